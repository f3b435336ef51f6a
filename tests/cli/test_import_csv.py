"""`fairbank import csv`: finished jobs of any scheduler, each line once.

Partition idle-std prices CPU=1.0,Mem=0.5G by the dearest. Of the three jobs of JOBS, by hand:
101 has 4 CPUs and 16 GiB, so 8 SU an hour, for 1.5 h: 12 SU. 102 has 2 CPUs for 10 minutes: 20
SU-minutes, 0.33 SU. 103 failed after an hour on 3 CPUs: 3 SU. Together 920 minutes, 15.33 SU.
"""

from __future__ import annotations

import json
from datetime import datetime, tzinfo
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairbank.bank.pricing import known_qos
from fairbank.cli import main
from fairbank.cli.framework.exit_codes import FOUND, WRONG_USAGE
from fairbank.cli.framework.host import Local
from fairbank.cluster.accounting_job import AccountingJob
from fairbank.core.errors import InvalidInput
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.time import iso
from fairbank.csv_import.jobs import JOB_FIELDS, JobFileRules, parse_job_table
from fairbank.csv_import.table import CsvRow, CsvTable
from tests.cli.conftest import Run, runner
from tests.cli.output_values import available, fold, output_of
from tests.cli.served_site import serve_site
from tests.cli.site import AYLA, BIO, CPU, JORGE

HEADER = "job_id,user,account,partition,start,end,cpus,memory,exit_code"
JOBS = f"""{HEADER}
101,{AYLA},chem_qmc,idle-std,2026-11-20T08:00Z,2026-11-20T09:30Z,4,16G,0
102,{JORGE},chem_qmc,idle-std,2026-11-20T08:00Z,2026-11-20T08:10Z,2,,0
103.pbs01,{JORGE},chem_qmc,idle-std,1795161600,1795165200,3,1024,1
"""


@pytest.fixture(autouse=True)
def directory(clean_env: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    clean_env.delenv("FAIRBANK_CLUSTER", raising=False)
    clean_env.chdir(tmp_path)
    return tmp_path


def row_of(changing: Run, job: int) -> dict[str, Any]:
    (row,) = json.loads(output_of(changing("jobs", "-a", "-j", job, "--json")))["data"]
    return dict(row)


def test_each_line_is_charged_once(changing: Run, directory: Path) -> None:
    (directory / "jobs.csv").write_text(JOBS)
    before = available(changing, CPU)
    planned = changing("import", "csv", "jobs.csv", "--dry-run")
    price = "jobs.csv: 3 runs would be charged, price 15.33 SU; 0 known already\nbank fairbank\n"
    assert output_of(planned) == price
    assert available(changing, CPU) == before
    done = changing("import", "csv", "jobs.csv")
    assert output_of(done) == "jobs.csv: 3 runs charged, 15.33 SU; 0 known already\nbank fairbank\n"
    assert available(changing, CPU) == before - 920
    assert [row_of(changing, job)["charged"] for job in (101, 102, 103)] == [720, 20, 180]
    assert row_of(changing, 103)["outcome"] == "FAILED"
    (directory / "more.csv").write_text(f"{JOBS}{JOBS.splitlines()[1].replace('101', '104', 1)}\n")
    again = changing("import", "csv", "more.csv")
    assert output_of(again) == "more.csv: 1 run charged, 12 SU; 3 known already\nbank fairbank\n"
    assert available(changing, CPU) == before - 920 - 720
    statement = changing("statement", CPU, "-l", "-S", "2026-11-21").out
    assert "imported from jobs.csv" in fold(statement)


def test_import_names_what_was_charged_and_what_was_written_off(
    changing: Run, directory: Path
) -> None:
    """Two jobs on 200 CPUs for 10 hours cost 4,000 SU. Of the 50 SU that are there the first gets
    all: 3,950 SU are written off.
    """
    term = ("--start", "2026-11-18", "--end", "2026-11-19", "--amount", 50, "--reason", "x")
    output_of(changing("alloc", "create", "-A", "bio_fold", "-r", "cpu", *term))
    cells = f"{JORGE},bio_fold,idle-std,2026-11-18T08:00Z,2026-11-18T18:00Z,200,,0"
    (directory / "jobs.csv").write_text(f"{HEADER}\n161,{cells}\n162,{cells}\n")
    words = ("import", "csv", "jobs.csv", "--json")
    (planned,) = json.loads(output_of(changing(*words, "--dry-run")))["data"]
    (cpu,) = planned["resources"]
    assert (cpu["cost"], cpu["charged"], cpu["written_off"]) == (240_000, None, None)
    assert (cpu["beyond_credit"], cpu["display"]["beyond_credit"]) == (237_000, "3950")
    before = available(changing, BIO)
    refused = fold(output_of(changing(*words[:-1]), WRONG_USAGE))
    assert (
        "nothing was changed: Charge 2 runs, price 4,000 SU, 3,950 SU beyond the credit?" in refused
    )
    assert "field: --yes try: add --yes" in refused
    assert available(changing, BIO) == before
    assert output_of(changing(*words[:-1], "--yes")) == (
        "jobs.csv: 2 runs charged, 50 SU, 3,950 SU beyond the credit written off; 0 known already\n"
        "bank fairbank\n"
    )
    (again,) = json.loads(output_of(changing(*words)))["data"]
    assert (again["known"], again["resources"]) == (2, [])


def test_used_processor_time_of_a_file_counts(changing: Run, directory: Path) -> None:
    """4 processors for an hour are 14,400 s, of which 10,800 s were used."""
    cells = f"{AYLA},chem_qmc,idle-std,2026-11-20T08:00Z,3600,4"
    header = "job_id,user,account,partition,start,elapsed,cpus,cpu_time"
    (directory / "jobs.csv").write_text(f"{header}\n271,{cells},3:00:00\n272,{cells},\n")
    output_of(changing("import", "csv", "jobs.csv"))
    shown = changing("eff", "271,272", "-n", "-P", "-o", "JOBID,CPU-USED,GIVEN,EFF%")
    assert output_of(shown).splitlines() == ["271|03:00:00|04:00:00|75%", "272|||"]
    # The bank does not know whether Slurm ran a job.
    assert (
        "Used processor time not known: 272. For a job that Slurm ran, ask on a host of its cluster"
        " with sacct." in fold(changing("eff", 272).err)
    )


def test_imported_jobs_are_listed_by_their_starts(changing: Run, directory: Path) -> None:
    """The number of a job says nothing of its time, nor does its line."""
    starts = {191: "10:00", 192: "08:00", 193: "11:00", 194: "09:00"}
    lines = [
        f"{job},{AYLA},chem_qmc,idle-std,2026-11-19T{start}Z,2026-11-19T12:00Z,1,,0"
        for job, start in starts.items()
    ]
    (directory / "jobs.csv").write_text("\n".join([HEADER, *lines, ""]))
    output_of(changing("import", "csv", "jobs.csv"))
    for limit, shown_jobs in (("all", 4), (2, 2)):
        shown = changing("jobs", "-a", "-n", "-P", "-o", "JOBID", "--limit", limit).out
        assert shown.split()[:4] == ["193", "191", "194", "192"][:shown_jobs]


def test_run_of_another_account_is_left_as_it_is(changing: Run, directory: Path) -> None:
    line = f"101,{AYLA},{{}},idle-std,2026-11-20T08:00Z,2026-11-20T09:30Z,4,16G,0\n"
    (directory / "jobs.csv").write_text(f"{HEADER}\n{line.format('chem_qmc')}")
    output_of(changing("import", "csv", "jobs.csv", "--yes"))
    (directory / "jobs.csv").write_text(f"{HEADER}\n{line.format('bio')}")
    again = changing("import", "csv", "jobs.csv", "--yes")
    assert again.code == FOUND
    assert "job 101 of bio: its run belongs to chem_qmc in the bank; left as it is" in fold(
        again.out + again.err
    )
    assert "0 runs charged, 0 SU; 0 known already" in fold(again.out)


def test_amounts_of_two_resources_are_not_added(changing: Run, directory: Path) -> None:
    """4 CPUs for an hour are 4 SU of cpu, 2 GPUs 2 SU of gpu."""
    times = "2026-11-20T08:00Z,2026-11-20T09:00Z"
    columns = "job_id,user,account,partition,start,end,cpus,gpus\n"
    jobs = f"171,{JORGE},chem_qmc,idle-std,{times},4,\n172,{JORGE},chem_qmc,gpu-v100,{times},2,2\n"
    (directory / "jobs.csv").write_text(columns + jobs)
    words = ("import", "csv", "jobs.csv")
    planned = output_of(changing(*words, "--dry-run"))
    price = "jobs.csv: 2 runs would be charged, cpu price 4 SU; gpu price 2 SU; 0 known already\n"
    assert planned == f"{price}bank fairbank\n"
    done = output_of(changing(*words))
    assert done == "jobs.csv: 2 runs charged, cpu 4 SU; gpu 2 SU; 0 known already\nbank fairbank\n"
    (directory / "jobs.csv").write_text(columns + jobs.replace("17", "18"))
    for options, is_charged in (("--dry-run",), False), ((), True):
        (row,) = json.loads(output_of(changing(*words, "--json", *options)))["data"]
        assert row.keys() & {"cost", "charged", "written_off", "released"} == set()
        assert [
            (one["resource"], one["runs"], one["cost"], one["charged"]) for one in row["resources"]
        ] == [
            ("cpu", 1, 240, 240 if is_charged else None),
            ("gpu", 1, 120, 120 if is_charged else None),
        ]


def test_import_ends_a_hold_by_hand(changing: Run, directory: Path) -> None:
    """Held for 2 h at 4 SU, 8 SU; the file says 1 h, so 4 SU are charged and 4 SU come back."""
    before = available(changing, CPU)
    job = ("-A", "chem_qmc", "-p", "idle-std", "-u", JORGE, "--tres", "cpu=4", "-t", "2:00:00")
    output_of(changing("hold", 105, *job, "-S", "2026-11-21T05:00:00"))
    assert available(changing, CPU) == before - 480
    line = f"105,{JORGE},chem_qmc,idle-std,2026-11-21T10:00Z,2026-11-21T11:00Z,4,,0"
    (directory / "jobs.csv").write_text(f"{HEADER}\n{line}\n")
    output_of(changing("import", "csv", "jobs.csv"))
    assert available(changing, CPU) == before - 240


def test_columns_may_have_other_names(changing: Run, directory: Path) -> None:
    """A byte-order mark, semicolons, local times, seconds, and a line that stands there twice. In
    New York 07:00 is 12:00 UTC. 1 h on one CPU costs 1 SU."""
    line = f"111;{JORGE};chem_qmc;2026-11-20 07:00:00;3600;cpu=1;idle-std"
    text = f"Job Id;Owner;account;Begin;elapsed;TRES;Queue\n{line}\n\n{line}\n"
    (directory / "pbs.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (directory / "pbs.toml").write_text('job_id = "Job Id"\nuser = "Owner"\nstart = "?"\n')
    named = ("--column", "start=Begin", "--column", "tres=TRES", "--column", "partition=Queue")
    words = ("import", "csv", "pbs.csv", "--columns", "pbs.toml", *named, "--delimiter", ";")
    assert "1 run charged, 1 SU" in output_of(changing(*words))
    assert row_of(changing, 111)["start"] == "2026-11-20T12:00:00Z"


def test_job_that_nobody_pays_is_left_out_or_covered(changing: Run, directory: Path) -> None:
    line = f"121,{JORGE},bio_fold,idle-std,2026-11-20T08:00Z,2026-11-20T10:00Z,1,,0"
    (directory / "jobs.csv").write_text(f"{HEADER}\n{line}\n")
    left = changing("import", "csv", "jobs.csv")
    assert "there was no allocation of cpu that could pay" in fold(left.err)
    assert left.code == FOUND
    cover = ("import", "csv", "jobs.csv", "--cover")
    (planned,) = json.loads(output_of(changing(*cover, "--dry-run", "--json")))["data"]
    (allocation,) = planned["covered"]
    assert (allocation["account"], allocation["amount"], allocation["runs"]) == ("bio_fold", 120, 1)
    output = output_of(changing(*cover))
    assert output == (
        "allocation for bio_fold/cpu: 2 SU for 1 run, category history\n"
        "jobs.csv: 1 run charged, 2 SU; 0 known already\nbank fairbank\n"
    )
    assert row_of(changing, 121)["project"] == BIO


def test_cover_needs_its_category_in_a_table_of_categories(
    directory: Path, clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prediction says so too, and the message names the key of the settings."""
    line = f"121,{JORGE},bio_fold,idle-std,2026-11-20T08:00Z,2026-11-20T10:00Z,1,,0"
    (directory / "jobs.csv").write_text(f"{HEADER}\n{line}\n")
    with serve_site(SITE_CATEGORIES="startup") as bank:
        clean_env.setenv("FAIRBANK_SERVER", bank.unix)
        changing = runner(main.run, capsys)
        for more in (("--dry-run",), ()):
            refused = changing("import", "csv", "jobs.csv", "--cover", *more)
            error = fold(output_of(refused, WRONG_USAGE))
            assert "category history, which the bank's settings do not have (startup)" in error
            assert "[policy.categories.history]" in error
        end = ("--end", "2027-01-01", "--reason", "x")
        create = changing("alloc", "create", "-A", "bio_fold", "-r", "fpga", *end)
        assert "alloc create has research by default" in fold(create.err)
    with serve_site(SITE_CATEGORIES="startup history") as bank:
        clean_env.setenv("FAIRBANK_SERVER", bank.unix)
        changing = runner(main.run, capsys)
        covered = changing("import", "csv", "jobs.csv", "--cover")
        assert "category history" in output_of(covered)


def test_unknown_account_is_called_so(changing: Run, directory: Path) -> None:
    line = f"122,{JORGE},chem_qcm,idle-std,2026-11-20T08:00Z,2026-11-20T10:00Z,1,,0"
    (directory / "jobs.csv").write_text(f"{HEADER}\n{line}\n")
    left = changing("import", "csv", "jobs.csv", "--dry-run", "--cover")
    assert "no active project has the account 'chem_qcm'; list them" in fold(left.err)
    assert left.code == FOUND


def test_run_of_an_unknown_user_is_charged_with_a_warning(changing: Run, directory: Path) -> None:
    """The warning stands in the prediction, in the result, and in JSON."""
    line = "123,jorgx,chem_qmc,idle-std,2026-11-20T08:00Z,2026-11-20T10:00Z,1,,0"
    (directory / "jobs.csv").write_text(f"{HEADER}\n{line}\n")
    unknown = "1 run of users unknown to this host (jorgx)"
    warning = f"{unknown}: entered without their user, as uid 65534"
    words = ("import", "csv", "jobs.csv")
    planned = json.loads(output_of(changing(*words, "--dry-run", "--json")))
    assert planned["warnings"][0].startswith(warning)
    done = changing(*words)
    assert output_of(done).startswith("jobs.csv: 1 run charged, 2 SU")
    assert f"! {warning}" in fold(done.err)
    again = changing(*words)
    assert ("1 known already" in output_of(again), again.err) == (True, "")
    # Measured use has no user at all: null.
    assert row_of(changing, 123)["owner_uid"] == OVERFLOW_UID
    used = json.loads(output_of(changing("usage", "--by", "user", "-S", "2026-11-01", "--json")))
    assert OVERFLOW_UID in [row["group"] for row in used["data"]]
    columns = ("-P", "--noheader", "-o", "USER,JOBS")
    assert "65534|1\n" in output_of(changing("usage", "--by", "user", "-S", "2026-11-01", *columns))


def test_run_is_charged_no_longer_than_from_its_start_to_its_end(
    changing: Run, directory: Path
) -> None:
    """An hour on 3 CPUs costs 3 SU, also if the scheduler counts up to a minute more."""
    job = f"{JORGE},chem_qmc,idle-std,2026-11-20T08:00Z,2026-11-20T09:00Z,3"
    header = "job_id,user,account,partition,start,end,cpus,elapsed"
    (directory / "jobs.csv").write_text(f"{header}\n142,{job},3600\n143,{job},3660\n")
    assert "2 runs charged, 6 SU" in output_of(changing("import", "csv", "jobs.csv"))
    assert [row_of(changing, number)["elapsed"] for number in (142, 143)] == [3_600, 3_600]


def test_any_qos_is_read_where_the_settings_list_none() -> None:
    times = {"start": "2026-11-20T08:00Z", "elapsed": "60"}
    assert read_job({**times, "qos": "normal"}, ZONES[0]).qos == "normal"


def test_qos_of_a_line_gives_its_resource(changing: Run, directory: Path) -> None:
    """Two hours on one CPU with QOS debug: 2 SU of debug, which only --cover can pay."""
    line = f"141,{JORGE},bio_fold,idle-std,2026-11-20T08:00Z,2026-11-20T10:00Z,1,debug"
    header = "job_id,user,account,partition,start,end,cpus,qos"
    (directory / "jobs.csv").write_text(f"{header}\n{line}\n")
    assert changing("import", "csv", "jobs.csv").code == FOUND
    output = output_of(changing("import", "csv", "jobs.csv", "--cover"))
    assert output.startswith("allocation for bio_fold/debug: 2 SU for 1 run")
    assert "1 known already" in output_of(changing("import", "csv", "jobs.csv"))


def test_tasks_of_an_array_are_runs_of_their_own(changing: Run, directory: Path) -> None:
    """JobID has the task, JobIDRaw its number; the last task has that of the array."""
    header = "JobID,JobIDRaw,user,account,partition,start,elapsed,cpus"
    tasks = [("150_1", 151), ("150_2", 152), ("150_3", 150)]
    rest = f"{JORGE},chem_qmc,idle-std,2026-11-20T08:00Z,3600,1"
    lines = [f"{task},{number},{rest}" for task, number in tasks]
    (directory / "sacct.csv").write_text("\n".join([header, *lines]))
    words = ("import", "csv", "sacct.csv", "--column")
    assert "3 runs charged, 3 SU" in output_of(changing(*words, "job_id=JobIDRaw"))
    assert row_of(changing, 152)["charged"] == 60
    changed = changing(*words, "job_id=JobID")
    assert "line 2, column JobID: '150_1' is a part of a job" in fold(changed.err)
    assert "3 lines have errors" in fold(changed.err)


ACCEPTED = {
    "job_id": ("a whole number from 1 to 4294967295", "give each part a number of its own"),
    "user": ("every job needs a value",),
    "account": ("1 to 255 bytes of printable text without , = or quotes",),
    "partition": ("the cluster has gpu-v100, idle-std",),
    "start": ("write 2026-11-21, 2026-11-21T07:30Z, or seconds since 1970",),
    "end": ("list only jobs that have ended", "check start and end", "give one of them"),
    "qos": ("one of debug, standby; or have it added",),
    "elapsed": ("check start, end and elapsed",),
    "cpu_time": ("whole seconds such as 5400, or [d-]hh:mm:ss such as 1:30:00",),
    "submitted": ("a job is submitted before it starts, or then",),
    "cpus": ("a whole number from 1 to 10000000", "give one: 8, or cpu=8,mem=16G"),
    "memory": ("MiB such as 16384, or with K, M, G, T: 16G",),
    "exit_code": ("a whole number from 0 to 383",),
}
"""What the remedy says of a wrong cell of each field."""
GOOD = dict(zip(HEADER.split(","), JOBS.splitlines()[1].split(","), strict=True))


@pytest.mark.parametrize(
    ("cells", "field", "message"),
    [
        ({"job_id": "12-3"}, "job_id", "'12-3' is not a job number"),
        ({"job_id": "123_4"}, "job_id", "'123_4' is a part of a job, not a job number"),
        ({"job_id": "123_[1-3]"}, "job_id", "in Slurm that is JobIDRaw: sacct -X -o JobIDRaw"),
        ({"job_id": "123_[1%2]"}, "job_id", "'123_[1%2]' is a part of a job"),
        ({"job_id": "123+1"}, "job_id", "'123+1' is a part of a job"),
        ({"job_id": "12[3].pbs01"}, "job_id", "'12[3].pbs01' is a part of a job"),
        ({"job_id": "123.4"}, "job_id", "'123.4' is a part of a job"),
        ({"job_id": "0"}, "job_id", "'0' is not a job number"),
        ({"job_id": "99999999999"}, "job_id", "'99999999999' is not a job number"),
        ({"user": ""}, "user", "the cell is empty"),
        ({"account": "'x"}, "account", "is not a name"),
        ({"partition": "nowhere"}, "partition", "there is no partition 'nowhere'"),
        ({"start": "20.11.2026 08:00"}, "start", "'20.11.2026 08:00' is not a time"),
        ({"start": "11/20/2026"}, "start", "'11/20/2026' is not a time"),
        ({"end": "2026-11-20T07:00Z"}, "end", "is before its start"),
        ({"end": "2027-11-20T07:00Z"}, "end", "is in the future"),
        ({"start": "1970-01-01"}, "end", "more than ten years"),
        ({"qos": "stndby"}, "qos", "there is no QOS 'stndby' in the bank's settings"),
        ({"qos": "stndby"}, "qos", "one of debug, standby; or have it added"),
        ({"elapsed": "5461"}, "elapsed", "5461 s are longer than from start to end, 5400 s"),
        ({"cpu_time": "2h"}, "cpu_time", "'2h' is not a duration"),
        ({"elapsed": "2:30:00"}, "elapsed", "9000 s are longer than from start to end, 5400 s"),
        ({"submitted": "2026-11-20T08:01Z"}, "submitted", "is after the start '2026-11-20T08:00Z'"),
        ({"end": ""}, "end", "neither an end nor elapsed time"),
        ({"cpus": "nan"}, "cpus", "'nan' is not a whole number in range"),
        ({"cpus": '"1,000"'}, "cpus", "'1,000' is not a whole number in range"),
        ({"cpus": "-4"}, "cpus", "'-4' is not a whole number in range"),
        ({"cpus": "1e9"}, "cpus", "'1e9' is not a whole number in range"),
        ({"cpus": "99999999999"}, "cpus", "a whole number from 1 to 10000000"),
        ({"cpus": ""}, "cpus", "neither tres nor cpus"),
        ({"memory": "lots"}, "memory", "'lots' is not an amount of memory"),
        ({"memory": "-1G"}, "memory", "'-1G' is not an amount of memory"),
        ({"memory": "9" * 19}, "memory", "is not an amount of memory"),
        ({"exit_code": "384"}, "exit_code", "a whole number from 0 to 383"),
    ],
)
def test_wrong_cell_is_named_with_its_line_and_nothing_is_written(
    changing: Run, directory: Path, cells: dict[str, str], field: str, message: str
) -> None:
    good, wrong = GOOD | {"job_id": "131"}, GOOD | {"job_id": "132"} | cells
    lines = [",".join(wrong)]
    lines += [",".join(row.get(name, "") for name in wrong) for row in (good, wrong)]
    (directory / "jobs.csv").write_text("\n".join(lines))
    before = available(changing, CPU)
    error = fold(output_of(changing("import", "csv", "jobs.csv"), WRONG_USAGE))
    assert f"line 3, column {field}: " in error
    assert message in error
    assert any(f"field: {field} try: {accepted}" in error for accepted in ACCEPTED[field])
    assert available(changing, CPU) == before


ZONES = (Local(), ZoneInfo("America/New_York"))
"""Of New York, where 01:00 to 02:00 occurs twice on 2026-11-01."""


def read_job(cells: dict[str, str], zone: tzinfo) -> AccountingJob:
    rules = JobFileRules(
        partitions=["cpu"],
        check_qos=partial(known_qos, qos_factors=(), qos_resources=(), field="qos"),
        uid_of={"root": 0}.get,
        now=2_000_000_000,
        zone=zone,
    )
    row = CsvRow(2, {"job_id": "1", "user": "root", "account": "chem", "cpus": "1", **cells})
    (job,) = parse_job_table(CsvTable(JOB_FIELDS, {}, [row]), rules)
    return job


@pytest.mark.parametrize("zone", ZONES, ids=["host", "tz database"])
@pytest.mark.parametrize(
    ("times", "start", "length"),
    [
        ("2026-11-01T01:50:00 2026-11-01T01:10:00 1200", "2026-11-01T05:50:00Z", 1_200),
        ("2026-11-01T01:30 2026-11-01T02:30 7200", "2026-11-01T05:30:00Z", 7_200),
        ("2026-11-01T01:30 2026-11-01T02:30 1:00:00", "2026-11-01T06:30:00Z", 3_600),
        ("2026-11-01T01:30-05:00 2026-11-01T02:30", "2026-11-01T06:30:00Z", 3_600),
        ("2026-11-01T00:30 2026-11-01T02:30", "2026-11-01T04:30:00Z", 10_800),
        # The end follows the start.
        ("2026-11-01T01:50 2026-11-01T01:10", "2026-11-01T05:50:00Z", 1_200),
        ("2026-11-01T01:20-05:00 2026-11-01T01:30", "2026-11-01T06:20:00Z", 600),
        ("2026-03-08T01:30 2026-03-08T03:30", "2026-03-08T06:30:00Z", 3_600),
    ],
)
def test_time_over_the_change_of_summer_time_is_taken_if_it_is_certain(
    zone: tzinfo, times: str, start: str, length: int
) -> None:
    cells = dict(zip(("start", "end", "elapsed"), times.split(), strict=False))
    job = read_job(cells, zone)
    began = int(datetime.fromisoformat(start).timestamp())
    assert (job.submitted, job.start, job.end) == (began, began, began + length)
    assert job.elapsed == length
    assert read_job(cells | {"submitted": cells["start"]}, zone) == job


@pytest.mark.parametrize("zone", ZONES, ids=["host", "tz database"])
@pytest.mark.parametrize(
    ("cells", "submitted", "start"),
    [
        ("submitted=2026-11-01T01:40 start=2026-11-01T01:20-05:00", "05:40", "06:20"),
        ("submitted=2026-11-01T01:50 start=2026-11-01T01:10", "05:50", "06:10"),
        ("submitted=2026-11-01T06:05Z start=2026-11-01T01:30", "06:05", "06:30"),
    ],
)
def test_submission_before_the_start_makes_a_time_that_occurs_twice_certain(
    zone: tzinfo, cells: str, submitted: str, start: str
) -> None:
    written = dict(cell.split("=") for cell in cells.split()) | {"elapsed": "60"}
    job = read_job(written, zone)
    assert (iso(job.submitted), iso(job.start or 0), job.elapsed) == (
        f"2026-11-01T{submitted}:00Z",
        f"2026-11-01T{start}:00Z",
        60,
    )


@pytest.mark.parametrize("zone", ZONES, ids=["host", "tz database"])
@pytest.mark.parametrize(
    ("cells", "field", "message"),
    [
        ("start=2026-11-01T01:30 end=2026-11-01T02:30", "start", "occurs twice"),
        ("start=2026-11-01T00:30 end=2026-11-01T01:30", "end", "occurs twice"),
        ("start=2026-11-01T01:30 elapsed=600", "start", "occurs twice"),
        ("start=2026-11-01T01:30 end=2026-11-01T01:40 elapsed=600", "start", "occurs twice"),
        ("start=2026-03-08T02:30 end=2026-03-08T04:30", "start", "left out by the change"),
        ("start=2026-03-08T01:30 end=2026-03-08T02:30", "end", "left out by the change"),
        (
            "start=2026-11-01T03:30 elapsed=60 submitted=2026-11-01T01:30",
            "submitted",
            "occurs twice",
        ),
    ],
)
def test_time_that_a_clock_shows_twice_or_never_is_refused(
    zone: tzinfo, cells: str, field: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        read_job(dict(cell.split("=") for cell in cells.split()), zone)
    assert error.value.field == field
    remedy = error.value.remedy or ""
    assert "write it with Z or an offset" in remedy
    offsets = {offset: f"T01:30:00{offset}" in remedy for offset in ("-04:00", "-05:00")}
    assert set(offsets.values()) == {message == "occurs twice"}


@pytest.mark.parametrize(
    ("cells", "state"),
    [
        ({"state": "CANCELLED by 0"}, "CANCELLED"),
        ({"state": "cancelled by 1000"}, "CANCELLED"),
        ({"state": "CANCELLED+"}, "CANCELLED"),
        ({"state": "OUT_OF_ME+"}, None),
        ({"exit_code": "0"}, "COMPLETED"),
        ({"exit_code": "271"}, "FAILED"),
    ],
)
def test_end_is_read_as_schedulers_write_it(cells: dict[str, str], state: str | None) -> None:
    times = {"start": "2026-11-20T08:00Z", "elapsed": "60"}
    if state is None:
        with pytest.raises(InvalidInput, match="is not a final state"):
            read_job(times | cells, ZONES[0])
    else:
        assert read_job(times | cells, ZONES[0]).state == state


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (b"", (), "the file is empty"),
        (JOBS.splitlines()[0].encode(), (), "the file has no line after its header"),
        (JOBS.replace(",", ";").encode(), (), "name the delimiter: --delimiter ';', or tab"),
        (JOBS.replace("account", "project").encode(), (), "no column 'account'"),
        (JOBS.replace("exit_code", "user").encode(), (), "the file has 2 columns 'user'"),
        (JOBS.encode(), ("--column", "qos=QOS"), "no column 'QOS' for the field qos"),
        (JOBS.encode(), ("--column", "queue=partition"), "'queue' is not a field"),
        (JOBS.encode(), ("--column", "qos"), "'qos' is not FIELD=NAME"),
        (
            JOBS.encode(),
            ("--column", "cpus=cpus", "--column", "cpus=start"),
            "'cpus=start' names a second column of the field, after 'cpus' field: --column",
        ),
        (
            JOBS.replace("cpus", "slots").encode(),
            (),
            "no column 'cpus', and no column 'tres' either",
        ),
        (JOBS.replace(",end,", ",stop,").encode(), (), "try: name one of them: --column end=NAME"),
        (JOBS.encode(), ("--delimiter", "::"), "'::' is not one character"),
        (JOBS.encode("utf-16"), (), "the file is in UTF-16"),
        (JOBS.replace("pbs", "pbß").encode("latin-1"), (), "line 4 is not UTF-8: it has the byte"),
        (JOBS.replace("16G,0", "16G").encode(), (), "line 2 has 8 cells, the header has 9"),
        (JOBS.replace("16G", '"16G').encode(), (), "line 2 is not CSV"),
        (f"{JOBS}{JOBS.splitlines()[1].replace('16G', '8G')}".encode(), (), "line 2 has another"),
        (JOBS.replace("16G", "9" * 18).encode(), (), "job 101 costs more than the bank can count"),
    ],
)
def test_wrong_file_is_refused_and_nothing_is_written(
    changing: Run, directory: Path, content: bytes, words: tuple[str, ...], message: str
) -> None:
    (directory / "jobs.csv").write_bytes(content)
    before = available(changing, CPU)
    error = fold(output_of(changing("import", "csv", "jobs.csv", *words), WRONG_USAGE))
    assert message in error
    assert available(changing, CPU) == before


def test_all_wrong_lines_are_counted(changing: Run, directory: Path) -> None:
    (directory / "jobs.csv").write_text(JOBS.replace("idle-std", "nowhere"))
    error = output_of(changing("import", "csv", "jobs.csv"), WRONG_USAGE)
    assert "there is no partition 'nowhere'; 3 lines have errors" in fold(error)


def test_missing_file_is_named_with_its_option(changing: Run, directory: Path) -> None:
    (directory / "jobs.csv").write_text(JOBS)
    columns = ("jobs.csv", "--columns", "none.toml")
    for words, field in ((("none.csv",), "FILE"), (columns, "--columns")):
        error = fold(output_of(changing("import", "csv", *words), 3))
        missing = f"cannot read {words[-1]}: No such file or directory"
        assert f"{missing} field: {field} try: name an existing file" in error


def test_file_of_columns_may_have_a_byte_order_mark(changing: Run, directory: Path) -> None:
    (directory / "jobs.csv").write_text(JOBS.replace("job_id", "Job"))
    (directory / "map.toml").write_text('job_id = "Job"', encoding="utf-8-sig")
    planned = changing("import", "csv", "jobs.csv", "--columns", "map.toml", "--dry-run")
    assert output_of(planned).startswith("jobs.csv: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"job_id = [", "(at end of document) field: --columns try: fix the line named"),
        ('qos = "Güte"'.encode("latin-1"), "byte 8 is 0xfc field: --columns try: save it as text"),
        (
            b"job_id = 5",
            "map.toml: job_id is not the name of a column field: --columns try: a name in quotes:"
            ' job_id = "NAME"',
        ),
        (
            b'job_id = "Id"\njob_id = "Job"\n',
            "Cannot overwrite a value (at line 2, column 15) field: --columns try: fix the line",
        ),
        (
            b'jobid = "Id"',
            "map.toml: 'jobid' is not a field field: --columns try: one of job_id, user, account,",
        ),
        (b'job_id = ""', "no column '' for the field job_id; it has job_id, user"),
    ],
)
def test_wrong_file_of_columns_is_refused_with_its_accepted_form(
    changing: Run, directory: Path, content: bytes, message: str
) -> None:
    (directory / "jobs.csv").write_text(JOBS)
    (directory / "map.toml").write_bytes(content)
    before = available(changing, CPU)
    error = fold(output_of(changing("import", "csv", "jobs.csv", "--columns", "map.toml"), 2))
    assert message in error
    assert available(changing, CPU) == before


def test_member_may_not_import(changing: Run, directory: Path) -> None:
    (directory / "jobs.csv").write_text(JOBS)
    error = output_of(changing("import", "csv", "jobs.csv", "--as", JORGE), 4)
    assert "you do not see everybody's runs" in fold(error)
    assert "field: --as" in fold(error)


JOB = st.tuples(st.integers(0, 86_400), st.integers(1, 300), st.integers(0, 300))
FIRST_JOBS = count(10**6, 8)
"""Numbers of the first jobs: a job that is known already would not be charged."""


@settings(
    max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(jobs=st.lists(JOB, min_size=1, max_size=8))
def test_charges_of_random_jobs_add_up(
    changing: Run, directory: Path, jobs: list[tuple[int, int, int]]
) -> None:
    """A job costs its CPUs or half its GiB an hour, each rounded up to a minute by itself."""
    first = next(FIRST_JOBS)
    lines = [
        f"{first + place},{JORGE},chem_qmc,idle-std,2026-11-19T08:00Z,,{cpus},{memory}G,{seconds}"
        for place, (seconds, cpus, memory) in enumerate(jobs)
    ]
    header = "job_id,user,account,partition,start,end,cpus,memory,elapsed"
    (directory / "jobs.csv").write_text("\n".join([header, *lines]))
    prices = [-(-seconds * max(2 * cpus, memory) // 120) for seconds, cpus, memory in jobs]
    before = available(changing, CPU)
    changing("import", "csv", "jobs.csv")
    changing("import", "csv", "jobs.csv")
    assert available(changing, CPU) == before - sum(prices)
