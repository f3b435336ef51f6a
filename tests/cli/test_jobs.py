"""Lists of jobs: own jobs, jobs of others, failed jobs and refused jobs."""

from __future__ import annotations

import csv
import io
import json

import pytest

from fairbank.cli.commands.bank.job_rows import COLUMNS
from fairbank.report.columns import DisplayFormat
from tests.cli.conftest import Run
from tests.cli.output_values import job_numbers
from tests.cli.site import AYLA, DANA, JORGE, MINH


def test_jobs_of_others_have_their_users_at_any_width(
    fairbank: Run, clean_env: pytest.MonkeyPatch
) -> None:
    for width in ("80", "40"):
        clean_env.setenv("COLUMNS", width)
        assert " USER " in fairbank("jobs", "-a").out
    assert " USER " not in fairbank("jobs", "--as", AYLA).out


def test_hold_of_a_running_job_is_shown_at_any_width(
    fairbank: Run, clean_env: pytest.MonkeyPatch
) -> None:
    for width in ("80", "60"):
        clean_env.setenv("COLUMNS", width)
        lines = fairbank("jobs", "-a").out.splitlines()
        held = lines[2].split().index("HELD")
        (row,) = (line.split() for line in lines if line.startswith("812300"))
        assert row[held - 1] == "3968"  # a job that runs has no SU yet
    assert "HELD" not in fairbank("jobs", "-a", "-S", "2026-07-01", "-E", "2026-08-01").out


def test_failed_jobs_with_their_waiting_time(fairbank: Run) -> None:
    rows = json.loads(fairbank("jobs", "-a", "--failed", "--json").out)["data"]
    assert [(row["job_id"], row["outcome"], row["waited"]) for row in rows] == [
        (812_222, "NODE_FAIL", 600),
        (700_004, "FAILED", 600),
    ]
    limited = fairbank("jobs", "-a", "--failed", "--limit", 1, "-n", "-P", "-o", "JOBID,WAITED")
    assert (limited.out, "There are more" in limited.err) == ("812222|00:10:00\n", True)
    both = fairbank("jobs", "-a", "--failed", "--limit", 2, "-n")
    assert "There are more" not in both.err
    assert fairbank("jobs", "--failed", "--running").code == 2


def test_jobs_shows_own_jobs_by_default(fairbank: Run) -> None:
    def jobs(*words: object) -> set[int]:
        return set(job_numbers(fairbank("jobs", "--json", *words)))

    assert jobs("--as", MINH) == {700_004, 701_002}
    assert jobs("-u", MINH, "--as", AYLA) == {700_004, 701_002}
    assert jobs("--running", "-a") == {812_300, 812_330, 812_344}
    assert jobs("-p", "gpu-v100", "--running", "-a") == {812_330}
    assert jobs("-j", 812_301) == {812_301}
    assert jobs("-j", "812301,4294967295") == {812_301}  # the highest job id of Slurm
    assert jobs("-a", "-S", "2026-11-21", "-E", "2026-11-21T05:00") == {812_330}
    assert jobs("-a", "--limit", 2) == {812_344, 812_330}
    assert len(jobs("-a", "--limit", "all")) == 12
    assert "There are more" in fairbank("jobs", "-a", "--limit", 2).err


@pytest.mark.parametrize("command", ["jobs -a", "eff 812301 812330"])
def test_jobs_of_two_resources_name_them(fairbank: Run, command: str) -> None:
    """At 80 columns the reason stays. Scripts get the same columns for all jobs."""
    headers = fairbank(*command.split()).out.splitlines()[2].split()
    assert "RESOURCE" in headers
    assert ("REASON" in headers) == command.startswith("jobs")
    one = fairbank(*command.split()[:1], *("-j", 812_301) if "jobs" in command else (812_301,))
    assert "RESOURCE" not in one.out
    (row,) = csv.DictReader(io.StringIO(fairbank("jobs", "-j", 812_330, "--csv").out))
    assert (row["RESOURCE"], row["CLUSTER"]) == ("gpu", "darwin")
    rows = json.loads(fairbank(*command.split(), "--json").out)["data"]
    resources = {row["job_id"]: row["resource"] for row in rows}
    assert (resources[812_301], resources[812_330]) == ("cpu", "gpu")


@pytest.mark.parametrize("command", ["jobs -a", "usage", "statement 1"])
def test_limit_of_0_rows_is_refused_as_by_the_routes(fairbank: Run, command: str) -> None:
    """`tests/rest/test_input_checks.py` has the rule of the routes."""
    refused = fairbank(*command.split(), "--limit", "0")
    assert refused.code == 2
    assert "--limit" in refused.err
    assert "'0' is not a whole number from 1 on; or all" in " ".join(refused.err.split())


def test_refusals_have_remedies(fairbank: Run) -> None:
    result = fairbank("jobs", "--refused", "--as", JORGE)
    assert "insufficient credit" in result.out
    assert "-A bio_fold (11,690 SU available)" in " ".join(result.err.split())
    assert fairbank("jobs", "--refused", "-j", 812_350, "-a").out.count("812350") == 1
    assert "None of your jobs of this selection was refused; -a includes" in " ".join(
        fairbank("jobs", "--refused", "--as", DANA).err.split()
    )


def test_refusals_of_one_cluster(fairbank: Run) -> None:
    assert "812350" in fairbank("jobs", "--refused", "-a", "-M", "darwin").out
    assert fairbank("jobs", "--refused", "-a", "-M", "hopper").out == ""
    assert fairbank("jobs", "--refused", "-a", "-p", "gpu-v100").code == 2


def test_written_off_column(fairbank: Run) -> None:
    output = fairbank(
        "jobs", "-a", "-j", "700004", "-P", "-o", "WRITTEN-OFF,WRITTEN-OFF-MINUTES"
    ).out.splitlines()
    assert output == ["WRITTEN-OFF|WRITTEN-OFF-MINUTES", "0|0"]
    column = next(column for column in COLUMNS if column.head == "WRITTEN-OFF")
    assert column.cell({"written_off": 101}, DisplayFormat()) == "1.68"


def test_jobs_are_reported_by_name_size_limit_and_exit(fairbank: Run) -> None:
    columns = "NAME,TIME-LIMIT,NODES,QOS,TRES,EXIT"
    output = fairbank(
        "jobs", "-a", "-j", "700004,812300", "-n", "-P", "-o", columns
    ).out.splitlines()
    assert output == [
        "relax_w64|1-07:00:00|2|normal|cpu=128,mem=512G,node=2|",
        "=fit|12:00:00|12|normal|cpu=744,mem=2976G,node=12|127:0",
    ]
    (name, *_), *_ = csv.reader(
        io.StringIO(fairbank("jobs", "-a", "-j", "700004", "-n", "--csv", "-o", columns).out)
    )
    assert name == "'=fit"  # escaped for spreadsheets


def test_unknown_partition_is_not_found(fairbank: Run) -> None:
    result = fairbank("jobs", "-p", "nosuch")
    assert (result.code, "  field: -p\n" in result.err) == (3, True)
    assert fairbank("jobs", "-p", "idle-std", "-j", "900000000").code == 0
