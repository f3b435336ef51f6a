"""Efficiency of single jobs: `fairbank eff`, and EFF% in `fairbank jobs`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.cli.output_values import output_of
from tests.cli.site import AYLA, DANA, MINH


def test_efficiency_of_a_job_and_the_cost_of_its_waste(fairbank: Run) -> None:
    """ayla's 42 processors (512 SU held for 12 h) ran 5 h 26 min: 42 x 19,560 s = 821,520 s given.

    747,583 s of them were used, 91 %; of 301 SU (18,060 SU-minutes) 73,937 / 821,520 were wasted:
    1,625.4 SU-minutes.
    """
    (row,) = json.loads(fairbank("eff", "812301", "--json").out)["data"]
    figures = ("cpus", "elapsed", "cpu_used", "cpu_given", "charged", "wasted")
    assert [row[name] for name in figures] == [42, 19_560, 747_583, 821_520, 18_060, 1_625]
    cells = ("eff", "812301", "-n", "-P", "-o", "JOBID,USER,CPUS,CPU-USED,GIVEN,EFF%,SU,WASTED")
    assert fairbank(*cells).out == (f"812301|{AYLA}|42|8-15:39:43|9-12:12:00|91%|301|27.08\n")


def test_request_that_would_have_been_enough_has_its_price(fairbank: Run) -> None:
    """747,583 s in 19,560 s are 38.2 processors, so that 39 of 42 would do.

    The memory of these jobs sets their prices, which therefore stay.
    """
    (row,) = json.loads(fairbank("eff", "812301", "--json").out)["data"]
    assert row["enough"]["cpus"] == 39
    assert row["enough"]["tres"].startswith("cpu=39,")
    assert row["enough"]["cost"] == row["cost"] == 18_060
    shown = fairbank("eff", "812301,700004", "-n", "-P", "-o", "ENOUGH,WOULD-COST").out
    assert shown == "39 CPUs|301\n90 CPUs|8939\n"


def test_what_would_have_been_enough_for_a_job_out_of_memory_is_not_known(
    changing: Run, tmp_path: Path
) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "job_id,user,account,partition,start,elapsed,cpus,memory,state,cpu_time\n"
        f"101,{AYLA},chem_qmc,idle-std,2026-11-20T08:00Z,01:00:00,4,16G,OUT_OF_MEMORY,00:20:00\n"
    )
    output_of(changing("import", "csv", str(jobs), "--yes"))
    shown = output_of(changing("eff", "101", "-n", "-P", "-o", "EFF%,ENOUGH,WOULD-COST"))
    assert shown == "8%||\n"


def test_jobs_are_shown_in_the_order_in_which_they_are_named(fairbank: Run) -> None:
    shown = fairbank("eff", "812301,700004", "700001", "-n", "-P", "-o", "JOBID,USER,EFF%").out
    assert shown == f"812301|{AYLA}|91%\n700004|{MINH}|12%\n700001|{AYLA}|91%\n"


def test_job_without_measured_processor_time_is_named(fairbank: Run) -> None:
    result = fairbank("eff", "702001,812344", "-o", "JOBID,USER,STATE,EFF%,WASTED")
    lines = [line.split() for line in result.out.splitlines() if line.startswith(("702", "812"))]
    assert lines == [
        ["702001", str(DANA), "COMPLETED", "-", "-"],
        ["812344", str(AYLA), "RUNNING", "-", "-"],
    ]
    assert "Used processor time not known: 702001." in result.err
    note = "As far as the bank knows, these still run: 812344. It learns of an end seconds after"
    assert note in " ".join(result.err.split())


def test_job_that_the_bank_does_not_know_is_an_error(fairbank: Run) -> None:
    result = fairbank("eff", "98,99")
    assert (result.code, result.out) == (3, "")
    assert "there is no job 98, 99 that you may see" in result.err
    assert "fairbank jobs --refused -j 98,99" in " ".join(result.err.split())
    for words in ((), ("x",), ("0",), ("-1",), ("1,,2",), ("9" * 12,), ("NaN",)):
        assert fairbank("eff", *words).code == 2


def test_known_jobs_are_shown_beside_an_unknown_one(fairbank: Run) -> None:
    """The exit code is 3, as that of `prio -j` with a job that does not wait."""
    result = fairbank("eff", "812301,99", "700004", "-n", "-P", "-o", "JOBID,EFF%")
    assert (result.code, result.out) == (3, "812301|91%\n700004|12%\n")
    assert "! there is no job 99 that you may see" in result.err
    data = json.loads(fairbank("eff", "812301,99", "--json").out)
    assert [row["job_id"] for row in data["data"]] == [812301]
    assert [text.split(";")[0] for text in data["warnings"]] == [
        "! there is no job 99 that you may see"
    ]


def test_efficiency_is_a_column_of_jobs(fairbank: Run) -> None:
    query = ("jobs", "-A", "chem_qmc", "-j", "812301,700004,812344", "-n", "-P")
    assert fairbank(*query, "-o", "JOBID,EFF%,WASTED").out.splitlines() == [
        "812344||",
        "812301|91%|27.08",
        "700004|12%|7866.32",
    ]
