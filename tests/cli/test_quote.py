"""Quotes for a job given by options or by a batch script."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from fairbank.bank.pricing import OBSERVED
from fairbank.cli import main
from tests.cli.conftest import Run, runner
from tests.cli.served_site import serve_site
from tests.cli.site import AYLA, JORGE


def test_quotes_read_a_batch_script(fairbank: Run, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH -A chem_qmc -p idle-std\n#SBATCH -n 4 -c 2 --mem=64G -t 12:00:00"
        " --exclusive\nsrun x\n"
    )
    result = fairbank("quote", script, "--as", AYLA)
    assert (result.code, "384 SU" in result.out, "enough for what is priced" in result.out) == (
        1,
        True,
        True,
    )
    assert "fits" not in result.out
    assert "not priced: --exclusive (all of each node); the price may be higher" in result.err
    data = json.loads(fairbank("quote", script, "--json", "--as", AYLA).out)
    assert (data["quote"]["fits"], data["not_read"]) == (None, ["--exclusive"])
    assert data["warnings"][-1].startswith("not priced: --exclusive")
    assert (
        fairbank("quote", script, "--tres", "cpu=64", "--as", AYLA).code == 0
    )  # --tres replaces the options of the script
    longer = fairbank("quote", script, "-t", "100-0", "--as", AYLA)
    assert longer.code == 5
    assert "try: a shorter time limit: -t 77-08:30:00" in longer.err
    assert "try: more credit, by staff: fairbank deposit 1 " in longer.err
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
def test_missing_quote_option_is_reported(fairbank: Run, words: list[str], named: str) -> None:
    result = fairbank("quote", "-A", "chem_qmc", *words)
    assert result.code == 2
    assert named in result.err


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\n  \n", "it is empty"),
        (b"\x7fELF\2\1\0\0", "it is a binary file"),
        (b"srun x\n", "it is without #! in its first line"),
    ],
)
def test_file_that_is_no_batch_script_is_refused(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, why: str
) -> None:
    script = tmp_path / "job.sh"
    script.write_bytes(content)
    for name in (script, "-"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        result = fairbank("quote", name, "-A", "chem_qmc", "-p", "idle-std", "-t", "60")
        assert (result.code, f"is not a batch script: {why}" in " ".join(result.err.split())) == (
            2,
            True,
        )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), "utf-8"))
    assert "is not a batch script" in " ".join(fairbank("quote", "-").err.split())


def test_observing_bank_quotes_every_job_as_affordable(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_site(SITE_OBSERVES="1") as bank:
        clean_env.setenv("FAIRBANK_SERVER", bank.unix)
        fairbank = runner(main.run, capsys)
        dear = ("quote", "-A", "chem_qmc", "-p", "idle-std", "-c", "64", "-t", "100-0")
        result = fairbank(*dear, "--as", AYLA)
        assert result.code == 0
        assert "and let through" in result.out
        assert "the bank only observes" in result.err
        data = json.loads(fairbank(*dear, "--json", "--as", AYLA).out)
        assert (data["quote"]["fits"], data["warnings"][1]) == (True, OBSERVED)
        assert data["warnings"][2].endswith(", and let through")


def test_quote_for_several_partitions_is_refused(fairbank: Run) -> None:
    result = fairbank("quote", "-A", "chem_qmc", "-p", "idle-std,gpu-v100", "-t", "60")
    assert (
        result.code,
        "one partition only" in result.err,
        "name one of them: -p idle-std\n" in result.err,
    ) == (2, True, True)


def test_banks_only_cluster_need_not_be_named(fairbank: Run, clean_env: pytest.MonkeyPatch) -> None:
    clean_env.delenv("FAIRBANK_CLUSTER")
    result = fairbank("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", "--as", AYLA)
    assert (result.code, "darwin/idle-std" in result.out) == (0, True)


def test_quote_reports_unpriced_options(fairbank: Run) -> None:
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
    output = fairbank(*job).err
    assert "note: QOS hihg has no price factor" in output
    assert "note: gres/gpu:v100: no price in partition idle-std" in output
    assert len(json.loads(fairbank(*job, "--json").out)["warnings"]) == 2


def test_payer_is_chosen_only_if_unambiguous(fairbank: Run, clean_env: pytest.MonkeyPatch) -> None:
    job = ("quote", "-p", "idle-std", "-t", "60")
    assert "chem_qmc/cpu" in fairbank(*job, "--as", AYLA).out
    two = fairbank(*job, "--as", JORGE)
    assert (two.code, "chem_qmc, bio_fold" in two.err) == (2, True)
    clean_env.setenv("SBATCH_ACCOUNT", "chem_qmc")
    assert fairbank(*job, "--as", JORGE).code == 0


ARRAY = ("quote", "-A", "chem_qmc", "-p", "idle-std", "-c", "4", "-t", "60", "--as", AYLA)


def test_array_is_priced_as_all_its_tasks_in_every_form(fairbank: Run) -> None:
    array = (*ARRAY, "--array", "1-10%2")
    result = fairbank(*array)
    assert "array of 10 tasks" in result.out
    assert "4 SU for each task" in result.out
    assert "10 tasks, 40 SU" in " ".join(result.out.split())
    quote = json.loads(fairbank(*array, "--json").out)["quote"]
    assert (quote["amount"], quote["tasks"], quote["total"]) == (240, 10, 2_400)
    assert quote["after"] == quote["available"] - 2_400
    header, row = (line.split(",") for line in fairbank(*array, "--csv").out.splitlines()[:2])
    cells = dict(zip(header, row, strict=True))
    assert (cells["SU"], cells["TASKS"], cells["TOTAL"], cells["FITS"]) == ("4", "10", "40", "yes")


def test_array_fits_only_if_all_its_tasks_are_paid(fairbank: Run) -> None:
    result = fairbank(*ARRAY, "--array", "1-100000")
    assert (result.code, "does not fit: not enough credit" in result.out) == (5, True)
    assert fairbank(*ARRAY).code == 0


def test_each_form_of_a_quote_tells_what_the_price_ignores(fairbank: Run) -> None:
    doubt = "no memory requested; the partition's default is not in this price"
    assert doubt in fairbank(*ARRAY).err
    assert json.loads(fairbank(*ARRAY, "--json").out)["warnings"] == [doubt]
    for form in ("--csv", "-P"):
        assert doubt in fairbank(*ARRAY, form).err


def test_frozen_or_capped_allocation_is_named_in_every_form(changing: Run) -> None:
    job = ("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", "--as", AYLA)
    allocation = json.loads(changing(*job, "--json").out)["quote"]["allocation"]
    assert changing("alloc", "cap", allocation, AYLA, "0").code == 0
    for form in ((), ("--csv",), ("-P",), ("--json",)):
        result = changing(*job, *form)
        assert result.code == 5
        text = " ".join((result.out + result.err).split())
        assert "the user's cap in this allocation is reached: requested 1 SU, available" in text, (
            form
        )
    assert changing("alloc", "freeze", allocation, "--reason", "test").code == 0
    for form in ((), ("--csv",), ("-P",), ("--json",)):
        result = changing(*job, *form)
        text = " ".join((result.out + result.err).split())
        assert (result.code, "does not fit: the allocation is frozen" in text) == (5, True), form
    assert json.loads(changing(*job, "--json").out)["quote"]["reason"] == "FROZEN"


@pytest.mark.parametrize("array", ["foo", "", "1-", "1,,2", "1-5%", "1:2"])
def test_array_that_is_no_range_is_refused(fairbank: Run, array: str) -> None:
    job = ("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", "--as", AYLA)
    result = fairbank(*job, f"--array={array}")
    assert (result.code, "field: --array" in result.err) == (2, True)
    assert fairbank(*job, "--array=0-15:4,20%2").code == 0
