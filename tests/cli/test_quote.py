"""Quotes for a job given by options or by a batch script."""

from __future__ import annotations

import io
import json
import re
import sys
from csv import DictReader
from pathlib import Path
from shutil import copytree

import pytest

from fairbank.bank.quote import OBSERVED
from fairbank.cli import main
from fairbank.report.columns import DisplayFormat
from fairbank.report.quote import COLUMNS, bill_rows
from fairbank.report.tables import csv
from tests.cli.conftest import Run, runner
from tests.cli.served_site import serve_site
from tests.cli.site import AYLA, JORGE
from tests.support.golden import GOLDEN


def test_quotes_read_a_batch_script(fairbank: Run, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH -A chem_qmc -p idle-std\n#SBATCH -n 4 -c 2 --mem=64G -t 12:00:00"
        " --licenses=x\nsrun x\n"
    )
    result = fairbank("quote", script, "--as", AYLA)
    assert (result.code, "384 SU" in result.out, "enough for what is priced" in result.out) == (
        1,
        True,
        True,
    )
    assert "fits" not in result.out
    assert "not priced: --licenses (licenses); the price may be higher" in result.err
    listed = fairbank("quote", script, "--json", "--as", AYLA)
    data = json.loads(listed.out)
    assert (listed.code, data["quote"]["fits"], data["not_read"]) == (1, None, ["--licenses"])
    assert data["warnings"][-1].startswith("not priced: --licenses")
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
        assert (data["quote"]["fits"], data["warnings"][0]) == (True, OBSERVED)
        assert data["warnings"][1].endswith(", and let through")


JOB = ("quote", "-A", "chem_qmc", "-t", "60", "--as", AYLA)
"""A job of one hour. A node of idle-std has 64 cores and 256 GiB; a core costs 1 SU an hour, a GiB
1/2, and jobs get 1 GiB per core. A node of gpu-v100 has 32 cores (1/16 SU each) and 4 GPUs (1 SU).
"""


@pytest.mark.parametrize(
    ("words", "price", "held"),
    [
        # Without --mem: 8 cores x 1 GiB x 0.5 = 4, less than 8 cores x 1 = 8.
        ("-c 8", 8, "1 node, 8 cores, 8 GiB"),
        # --mem=0: 256 GiB x 0.5 = 128 for each node.
        ("-c 8 --mem=0", 128, "1 node, 8 cores, 256 GiB"),
        ("-c 8 --mem-per-cpu=0", 128, "1 node, 8 cores, 256 GiB"),  # Slurm takes it as --mem=0
        ("-N 2 --mem=0", 256, "2 nodes, 2 cores, 512 GiB"),
        # 8,000 x 256 GiB, in plain decimals: 2,048,000 GiB x 0.5.
        ("-N 8000 --mem=0", 1024000, "8000 nodes, 8000 cores, 2048000 GiB"),
        # --exclusive: 64 cores x 1 = 64, and 1 GiB for each of them.
        ("-c 8 --exclusive", 64, "1 node, 64 cores, 64 GiB"),
        # ... but only the requested memory: 10 GiB for each node, 3 GiB for each of all cores.
        ("-N 2 --exclusive --mem=10G", 128, "2 nodes, 128 cores, 20 GiB"),
        ("--exclusive --mem-per-cpu=3G", 96, "1 node, 64 cores, 192 GiB"),
        # 65 tasks need two nodes.
        ("--ntasks 65 --exclusive", 128, "2 nodes, 128 cores, 128 GiB"),
        # All 4 GPUs of the node: 4 x 1 = 4, its cores 32 / 16 = 2.
        ("-p gpu-v100 --gpus 1 --exclusive --mem 1G", 4, "1 node, 32 cores, 1 GiB, 4 gpu:v100"),
    ],
)
def test_whole_nodes_and_default_memory_are_priced(
    fairbank: Run, words: str, price: int, held: str
) -> None:
    result = fairbank(*JOB, *words.split(), "--json")
    quote = json.loads(result.out)["quote"]
    assert (quote["amount"], quote["display"]["amount"]) == (price * 60, str(price))
    assert f"{held}, 01:00:00" in " ".join(fairbank(*JOB, *words.split()).out.split())


def test_setting_that_a_price_needs_is_named(fairbank: Run) -> None:
    result = fairbank(*JOB, "-p", "gpu-v100", "--gpus", 1, "--mem=0")
    assert (result.code, "field: --mem\n" in result.err) == (2, True)
    assert "staff set clusters.darwin.partitions.gpu-v100.node_memory" in result.err


def test_quote_without_a_needed_cluster_names_the_option(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_site(SITE_CLUSTERS="wilkes") as bank:
        clean_env.setenv("FAIRBANK_SERVER", bank.unix)
        job = ("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", 60)
        error = " ".join(runner(main.run, capsys)(*job).err.split())
        assert (
            "try: name one with -M CLUSTER, or FAIRBANK_CLUSTER; the settings know: darwin, wilkes"
            in error
        )


def test_job_in_several_partitions_has_a_price_in_each(fairbank: Run) -> None:
    """16 cores in idle-std cost 16 SU of cpu, in gpu-v100 16 / 16 = 1 SU of gpu."""
    job = (*JOB, "-p", "gpu-v100,idle-std", "-c", "16", "--mem", "1G")
    result = fairbank(*job)
    text = " ".join(result.out.split())
    assert "in partitions idle-std 16 SU of cpu, gpu-v100 1 SU of gpu; held and charged" in text
    data = json.loads(fairbank(*job, "--json").out)
    assert [(row["partition"], row["what"]) for row in data["data"]] == [
        ("idle-std", "cpu"),
        ("idle-std", "mem"),
        ("gpu-v100", "cpu"),
        ("gpu-v100", "mem"),
    ]
    prices = [
        (partition["partition"], partition["total"]) for partition in data["quote"]["partitions"]
    ]
    assert prices == [("idle-std", 960), ("gpu-v100", 60)]
    header, *rows = (line.split(",") for line in fairbank(*job, "--csv").out.splitlines())
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(row["PARTITION"], row["SU"], row["FITS"]) for row in cells] == [
        ("idle-std", "16", "yes"),
        ("idle-std", "16", "yes"),
        ("gpu-v100", "1", "yes"),
        ("gpu-v100", "1", "yes"),
    ]


def test_partition_without_the_gpus_is_passed_over(fairbank: Run) -> None:
    job = (*JOB, "-p", "idle-std,gpu-v100", "--gpus", 1, "--mem", "1G")
    result = fairbank(*job)
    assert "darwin/gpu-v100" in result.out
    note = "--gpus asks for gres/gpu, and the nodes of partition idle-std have none"
    assert f"note: {note}" in " ".join(result.err.split())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            "--gres gpu:v100:8",
            "--gres asks for 8 gres/gpu:v100 on one node, and a node of partition gpu-v100 has 4"
            " gres/gpu:v100",
        ),
        (
            "-N 1 --gpus-per-node v100:8",
            "--gpus-per-node asks for 8 gres/gpu:v100 on one node, and a node of partition gpu-v100"
            " has 4 gres/gpu:v100",
        ),
        (
            "--gpus-per-task 5",
            "--gpus-per-task asks for 5 gres/gpu on one node, and a node of partition gpu-v100 has"
            " 4 gres/gpu",
        ),
        (
            "-c 33",
            "--cpus-per-task asks for 33 CPUs on one node, and a node of partition gpu-v100 has 32"
            " CPUs",
        ),
        (
            "--tasks-per-node 5 -c 7",
            "--ntasks-per-node asks for 35 CPUs on one node, and a node of partition gpu-v100 has"
            " 32 CPUs",
        ),
        (
            "-n 8 --ntasks-per-node 4 -N 1",
            "--nodes allows 1, and the job needs 2 nodes of partition gpu-v100",
        ),
        ("-N 1 -n 33", "--nodes allows 1, and the job needs 2 nodes of partition gpu-v100"),
        ("-N 1 -G 5", "--nodes allows 1, and the job needs 2 nodes of partition gpu-v100"),
        (
            "--gres gpu:2080ti:8",
            "--gres asks for gres/gpu:2080ti, and the nodes of partition gpu-v100 have none",
        ),
        (
            "--gpus 2080ti:8",
            "--gpus asks for gres/gpu:2080ti, and the nodes of partition gpu-v100 have none",
        ),
        (
            "-p idle-std --mem 600G",
            "--mem asks for 600 GiB on one node, and a node of partition idle-std has 256 GiB",
        ),
        (
            "-p idle-std -c 8 --mem-per-cpu 40G",
            "--mem-per-cpu asks for 320 GiB on one node, and a node of partition idle-std has 256",
        ),
    ],
)
def test_job_that_no_node_can_run_is_refused_with_its_option(
    fairbank: Run, words: str, why: str
) -> None:
    result = fairbank(*JOB, *(() if "-p" in words.split() else ("-p", "gpu-v100")), *words.split())
    error = " ".join(result.err.split())
    assert (result.code, result.out, why in error) == (2, "", True), error
    assert "Requested node configuration is not available" in error


def test_job_without_a_partition_is_priced_in_the_default_one(fairbank: Run) -> None:
    assert "darwin/idle-std" in fairbank(*JOB).out


def test_cheaper_requests_that_fit_are_named(fairbank: Run) -> None:
    """Of chem_qmc/gpu 262 SU are left. 8 nodes with 4 GPUs for 10 hours cost 8 x 4 x 10 = 320 SU;
    262 SU pay for 8.1875 hours (08:11:15), or for 6 nodes (240 SU).
    """
    job = ("quote", "-A", "chem_qmc", "-p", "gpu-v100", "-N", 8, "--gpus-per-node", 4, "--mem")
    result = fairbank(*job, "8G", "-t", "10:00:00", "--as", AYLA)
    assert result.code == 5
    for line in (
        "try: a shorter time limit: -t 08:11:00",
        "try: fewer nodes, of the same size: 6 (240 SU)",
        "try: another QOS, if you may use it: -q standby (0 SU)",
    ):
        assert line in result.err
    in_minutes = fairbank(*job, "8G", "-t", "10:00:00", "--as", AYLA, "--units", "m")
    shown = " ".join(in_minutes.out.split())
    assert "hold at start 19,200 SU-minutes" in shown
    assert "available 15,720 SU-minutes does not fit" in shown
    assert "of the same size: 6 (14,400 SU-minutes)" in in_minutes.err
    cheaper = json.loads(fairbank(*job, "8G", "-t", "10:00:00", "--json", "--as", AYLA).out)[
        "quote"
    ]["cheaper"]
    assert [(change["change"], change["value"], change["total"]) for change in cheaper] == [
        ("time_limit", "08:11:00", 32 * 491),
        ("nodes", "6", 14_400),
        ("qos", "standby", 0),
    ]


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """Return the recorded queue of 2026-11-22 18:01:17, as that of cluster darwin."""
    folder = tmp_path / "queue"
    copytree(GOLDEN / "slurm-22.05" / "queue", folder)
    for file in folder.iterdir():
        text = file.read_text().replace("= lab\n", "= darwin\n")
        file.write_text(re.sub(r"(Partitions?|PartitionName)=cpu\b", r"\1=idle-std", text))
    (folder / "qos.txt").write_text((GOLDEN / "slurm-22.05" / "qos-plain.txt").read_text())
    (folder / "associations.txt").write_text("")
    (folder / "sshare.txt").write_text("root|darwin||||0.0|100||1.0|||||1|\n")
    return folder


def test_likely_start_is_shown_where_the_queue_is_known(fairbank: Run, queue: Path) -> None:
    """The job of one core starts at once beside the running ones."""
    job = ("quote", "-A", "chem_qmc", "-t", "60", "--from", queue)
    assert "likely start now, 2026-11-22 13:01:17" in " ".join(fairbank(*job).out.split())
    quote = json.loads(fairbank(*job, "--json").out)["quote"]
    assert quote["likely_start"] == {
        "likely": "2026-11-22T18:01:17Z",
        "earliest": "2026-11-22T18:01:17Z",
        "median": "2026-11-22T18:01:17Z",
        "latest": "2026-11-22T18:01:17Z",
        "simulated_runs": 0,
        "started": 0,
    }
    (queue / "sshare.txt").unlink()
    missing = fairbank(*job)
    assert (missing.code, "there is no sshare.txt" in missing.err) == (3, True)


def test_likely_start_is_that_on_as_many_nodes_as_the_job_needs(fairbank: Run, queue: Path) -> None:
    """A node has 64 CPUs. Two nodes are free enough for the 96 CPUs at once."""
    job = (
        "quote",
        "-A",
        "chem_qmc",
        "-p",
        "idle-std",
        "--tres",
        "cpu=96,mem=8G",
        "-t",
        "1",
        "--from",
        queue,
    )
    quote = json.loads(fairbank(*job, "--json").out)["quote"]
    assert "node=2" in quote["partitions"][0]["tres"]
    assert quote["likely_start"]["median"] == "2026-11-22T18:01:17Z"


def test_price_is_that_of_the_cluster_of_the_queue(fairbank: Run, queue: Path) -> None:
    """The settings name darwin. The price would be too high to look into the queue."""
    config = queue / "config.txt"
    job = ("quote", "-A", "chem_qmc", "-t", "7-00:00:00", "-N", "999", "--from", queue)
    for name, more, code, sentence in (
        ("lab", (), 3, "there is no cluster 'lab'"),
        ("lab", ("-M", "darwin"), 2, "the queue is that of cluster lab, not darwin"),
        ("", (), 2, "Slurm's settings name no cluster"),
    ):
        config.write_text(re.sub(r"(ClusterName +=).*", rf"\1 {name}", config.read_text()))
        result = fairbank(*job, *more)
        assert (result.code, result.out) == (code, "")
        assert sentence in " ".join(result.err.split())


def test_lines_that_the_likely_start_leaves_out_are_named(fairbank: Run, queue: Path) -> None:
    path = queue / "sshare.txt"
    path.write_text(f"{path.read_text()} chem_qmc|darwin|||much|0.0|100||1.0|||||1|\n")
    result = fairbank("quote", "-A", "chem_qmc", "-t", "60", "--from", queue)
    assert "likely start" in result.out
    assert result.err.count("! not read: sshare, line 2, RawShares") == 1


def test_likely_start_is_null_without_a_queue(fairbank: Run, queue: Path) -> None:
    for words in ((), ("--from", queue, "--no-likely")):
        result = fairbank(*JOB, *words, "--json")
        assert json.loads(result.out)["quote"]["likely_start"] is None
        assert "likely start" not in fairbank(*JOB, *words).out


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["-p", "idle-std,nosuch"], "-p"),
        (["-p", "idle-std,,gpu-v100"], "-p"),
        (["-p", "-1"], "-p"),
        (["-p", ""], "-p"),
        (["--mem", "16X"], "--mem"),
        (["--mem=-1"], "--mem"),
        (["--mem", "nan"], "--mem"),
        (["--mem", "9" * 13], "--mem"),
        (["--exclusive=nodes"], "--exclusive"),
    ],
)
def test_invalid_value_is_refused_with_its_option(
    fairbank: Run, words: list[str], field: str
) -> None:
    result = fairbank(*JOB, *words)
    assert result.code in (2, 3)
    assert f"field: {field}\n" in result.err or f"argument {field}" in result.err
    assert "Traceback" not in result.err


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
        "cpu=1,license/matlab=4",
    )
    output = fairbank(*job).err
    assert "note: QOS hihg has no price factor" in output
    assert "note: license/matlab: no price in partition idle-std" in output
    assert len(json.loads(fairbank(*job, "--json").out)["warnings"]) == 2


def test_payer_is_chosen_only_if_unambiguous(fairbank: Run, clean_env: pytest.MonkeyPatch) -> None:
    job = ("quote", "-p", "idle-std", "-t", "60")
    assert "chem_qmc/cpu" in fairbank(*job, "--as", AYLA).out
    two = fairbank(*job, "--as", JORGE)
    assert (two.code, "chem_qmc, bio_fold" in two.err) == (2, True)
    clean_env.setenv("SBATCH_ACCOUNT", "chem_qmc")
    assert fairbank(*job, "--as", JORGE).code == 0


ARRAY = ("quote", "-A", "chem_qmc", "-p", "idle-std", "-c", "4", "-t", "60", "--as", AYLA)


def test_short_options_of_a_quote_mean_what_they_mean_to_sbatch(fairbank: Run) -> None:
    """-n is the number of tasks, and -a the range of an array: 8 tasks of 4 cores, twice."""
    words = (*ARRAY, "--noheader", "-P", "-o", "COUNT,SU,TASKS,TOTAL")
    assert fairbank(*words, "-n", "8", "-a", "1-2").out.splitlines()[0] == "32|32|2|64"


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


def test_job_without_a_priced_tres_has_a_row() -> None:
    """A partition whose weights are GRES/gpu=1 prices nothing of a job with cores only."""
    facts = {"amount": 0, "total": 0, "available": 600, "fits": True}
    quote = {"tasks": 1, "partitions": [{"partition": "gpu", "lines": [], **facts}]}
    (cells,) = DictReader(csv(COLUMNS, bill_rows(quote), DisplayFormat()))
    assert cells == {
        **dict.fromkeys(("TRES", "COUNT", "WEIGHT", "BILLED", "SETS"), ""),
        "PARTITION": "gpu",
        "SU": "0",
        "TASKS": "1",
        "TOTAL": "0",
        "AVAILABLE": "10",
        "FITS": "yes",
    }


def test_array_fits_only_if_all_its_tasks_are_paid(fairbank: Run) -> None:
    result = fairbank(*ARRAY, "--array", "1-100000")
    assert (result.code, "does not fit: not enough credit" in result.out) == (5, True)
    assert fairbank(*ARRAY).code == 0


def test_each_form_of_a_quote_tells_what_the_price_ignores(fairbank: Run) -> None:
    job = ("quote", "-A", "chem_qmc", "-p", "gpu-v100", "--gpus", 1, "-t", "60", "--as", AYLA)
    doubt = (
        "no memory requested; the default of partition gpu-v100 is not in this price: the bank's"
        " settings lack clusters.darwin.partitions.gpu-v100.def_mem_per_cpu or def_mem_per_node"
    )
    assert doubt in " ".join(fairbank(*job).err.split())
    assert json.loads(fairbank(*job, "--json").out)["warnings"] == [doubt]
    for form in ("--csv", "-P"):
        assert doubt in " ".join(fairbank(*job, form).err.split())


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


@pytest.mark.parametrize("array", ["foo", "1-", "1,,2", "1-5%", "1:2"])
def test_array_that_is_no_range_is_refused(fairbank: Run, array: str) -> None:
    job = ("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", "--as", AYLA)
    result = fairbank(*job, f"--array={array}")
    assert (result.code, "field: --array" in result.err) == (2, True)
    assert fairbank(*job, "--array=0-15:4,20%2").code == 0


def test_short_term_allocation_decides_where_a_quoted_job_runs(changing: Run) -> None:
    """bio_fold has idle-std, the default, and the reservation school until the end of November."""
    terms = ("--start", "2026-11-20", "--end", "2026-12-01", "--amount", 100, "--yes")
    place = ("--partition", "idle-std", "--reservation", "school", "--reason", "spring school")
    granted = changing("alloc", "create", "-A", "bio_fold", "-r", "cpu", *terms, *place)
    assert granted.code == 0, granted.err
    quote = ("quote", "-t", "60", "-c", "8", "--mem", "1G", "-A")
    for words in ((), ("-p", "gpu-v100"), ("-p", "idle-std", "--reservation", "school")):
        result = changing(*quote, "bio_fold", *words)
        assert result.code == 0, result.err
        assert "job: darwin/idle-std in reservation school, 1 node" in " ".join(result.out.split())
        note = "note: partition gpu-v100 replaced by idle-std, where all jobs of biofold run:"
        assert (note in " ".join(result.err.split())) == ("gpu-v100" in words)
    for words in ((), ("-p", "gpu-v100,idle-std")):
        refused = changing(*quote, "chem_qmc", *words)
        assert (refused.code, refused.out) == (4, "")
        reason = " ".join(refused.err.split())
        assert "partition idle-std takes no job of chem_qmc until 2026-12-0" in reason
        assert "name another partition: gpu-v100" in reason
    refused = changing(*quote, "chem_qmc", "-p", "gpu-v100", "--reservation", "school")
    assert (refused.code, "leave out --reservation" in refused.err) == (4, True)
