"""Stories of people who ask what a job would cost, in words or with a batch script."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from fairbank.bank.pricing import OBSERVED
from fairbank.cli import main
from tests.cli.conftest import Run, runner
from tests.cli.served_site import served
from tests.cli.site import AYLA, JORGE


def test_quotes_read_a_batch_script(fairbank: Run, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH -A chem_qmc -p idle-std\n#SBATCH -n 4 -c 2 --mem=64G -t 12:00:00"
        " --exclusive\nsrun x\n"
    )
    said = fairbank("quote", script, "--as", AYLA)
    assert (said.code, "384 SU" in said.out, "enough for what is priced" in said.out) == (
        1,
        True,
        True,
    )
    assert "fits" not in said.out
    assert "not priced: --exclusive (all of each node); the price may be higher" in said.err
    told = json.loads(fairbank("quote", script, "--json", "--as", AYLA).out)
    assert (told["quote"]["fits"], told["not_read"]) == (None, ["--exclusive"])
    assert told["warnings"][-1].startswith("not priced: --exclusive")
    assert (
        fairbank("quote", script, "--tres", "cpu=64", "--as", AYLA).code == 0
    )  # what it holds is said
    longer = fairbank("quote", script, "-t", "100-0", "--as", AYLA)
    assert longer.code == 5
    assert "the longest that fits" in longer.err
    assert fairbank("quote", script, "-A", "bio_fold", "--as", AYLA).code == 3
    assert fairbank("quote", tmp_path / "none").code == 3


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["-p", "idle-std"], "time"),
        (["-t", "1"], "partition"),
        (["-t", "never", "-p", "x"], "field: -t"),
        (["-t", "99999-0", "-p", "x"], "at most 3660-00:00:00"),
        (["-c", "0"], "field: -c"),
    ],
)
def test_a_quote_says_what_it_misses(fairbank: Run, words: list[str], named: str) -> None:
    said = fairbank("quote", "-A", "chem_qmc", *words)
    assert said.code == 2
    assert named in said.err


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "it is empty"), (b"\n  \n", "it is empty"), (b"\x7fELF\2\1\0\0", "it is a binary file")],
)
def test_what_is_no_batch_script_is_not_read_as_one(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, why: str
) -> None:
    script = tmp_path / "job.sh"
    script.write_bytes(content)
    for name in (script, "-"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        said = fairbank("quote", name, "-A", "chem_qmc", "-p", "idle-std", "-t", "60")
        assert (said.code, f"is not a batch script: {why}" in " ".join(said.err.split())) == (
            2,
            True,
        )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), "utf-8"))
    assert "is not a batch script" in " ".join(fairbank("quote", "-").err.split())


def test_where_the_bank_only_observes_no_job_is_too_dear(
    surroundings: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(CENTRE_OBSERVES="1") as bank:
        surroundings.setenv("FAIRBANK_SERVER", bank.unix)
        fairbank = runner(main.run, capsys)
        dear = ("quote", "-A", "chem_qmc", "-p", "idle-std", "-c", "64", "-t", "100-0")
        said = fairbank(*dear, "--as", AYLA)
        assert said.code == 0
        assert "and let through" in said.out
        assert "the bank only observes" in said.err
        told = json.loads(fairbank(*dear, "--json", "--as", AYLA).out)
        assert (told["quote"]["fits"], told["warnings"]) == (True, [OBSERVED])


def test_a_price_is_of_one_partition(fairbank: Run) -> None:
    said = fairbank("quote", "-A", "chem_qmc", "-p", "idle-std,gpu-v100", "-t", "60")
    assert (
        said.code,
        "one partition only" in said.err,
        "name one of them: -p idle-std\n" in said.err,
    ) == (2, True, True)


def test_the_banks_only_cluster_need_not_be_named(
    fairbank: Run, surroundings: pytest.MonkeyPatch
) -> None:
    surroundings.delenv("FAIRBANK_CLUSTER")
    said = fairbank("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", "--as", AYLA)
    assert (said.code, "darwin/idle-std" in said.out) == (0, True)


def test_a_quote_says_what_it_does_not_price(fairbank: Run) -> None:
    job = (
        "quote",
        "-A",
        "chem_qmc",
        "-p",
        "idle-std",
        "-t",
        "60",
        "--as",
        AYLA,
        "-q",
        "hihg",
        "--tres",
        "cpu=1,gres/gpu:v100=4",
    )
    said = fairbank(*job).err
    assert "note: QOS hihg has no price factor" in said
    assert "note: gres/gpu:v100: no price in partition idle-std" in said
    assert len(json.loads(fairbank(*job, "--json").out)["warnings"]) == 2


def test_payer_is_chosen_only_if_unambiguous(
    fairbank: Run, surroundings: pytest.MonkeyPatch
) -> None:
    job = ("quote", "-p", "idle-std", "-t", "60")
    assert "chem_qmc/cpu" in fairbank(*job, "--as", AYLA).out
    two = fairbank(*job, "--as", JORGE)
    assert (two.code, "chem_qmc, bio_fold" in two.err) == (2, True)
    surroundings.setenv("SBATCH_ACCOUNT", "chem_qmc")
    assert fairbank(*job, "--as", JORGE).code == 0
