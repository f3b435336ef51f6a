"""The answers of each recorded release but the oldest (test_answers.py has that one): all is read,
and both forms say the same.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from fairbank.core.tres import parse_counts
from fairbank.slurm.parsers import config, job_lines, jobs, machine, sacct, sacctmgr, squeue, sshare
from fairbank.slurm.parsers.config import COMPLETE_JSON, RECORDED, read_version, support_note
from fairbank.slurm.parsers.values import AccountingJob

GOLDEN = Path(__file__).parents[2] / "golden"
NEWER = sorted(
    f"{year}.{month:02}" for year, month in RECORDED if (year, month) >= COMPLETE_JSON[:2]
)


def test_some_are_recorded() -> None:
    assert "24.11" in NEWER


@pytest.fixture(params=NEWER)
def folder(request: pytest.FixtureRequest) -> Path:
    return GOLDEN / f"slurm-{request.param}"


def comparable(job: AccountingJob) -> AccountingJob:
    """Without what one form alone tells, and with TRES in one order and in MiB."""
    counts = sorted((name, float(count)) for name, count in parse_counts(job.tres).items())
    return msgspec.structs.replace(
        job,
        owner=None,
        restart=None,
        elapsed=0,
        tres=",".join(f"{name}={count}" for name, count in counts),
    )


def test_the_version_is_known(folder: Path) -> None:
    version = read_version((folder / "version.txt").read_text())
    assert folder.name == f"slurm-{version.year}.{version.month:02}"
    assert support_note(version) == "its answers are known"


def test_accounting_says_the_same_as_json_and_in_columns(folder: Path) -> None:
    columns = sacct.JOBS.read((folder / "sacct-runs.txt").read_text())
    told = sacct.read_json((folder / "sacct-all.json").read_bytes())
    assert columns.unreadable == told.unreadable == ()
    assert [comparable(job) for job in told.rows] == [comparable(job) for job in columns.rows]
    assert {job.state for job in told.rows} == {
        "REQUEUED", "NODE_FAIL", "CANCELLED", "RUNNING", "PENDING", "FAILED", "TIMEOUT",
        "COMPLETED",
    }  # fmt: skip
    assert all(job.is_complete for job in columns.rows)


def test_json_counts_restarts(folder: Path) -> None:
    again = [
        job
        for job in sacct.read_json((folder / "sacct-all.json").read_bytes()).rows
        if job.job_id == 19
    ]
    assert [(job.state, job.restart) for job in again] == [("REQUEUED", 0), ("RUNNING", 1)]


def test_gpus_and_whole_nodes_are_reported(folder: Path) -> None:
    held = {
        job.job_id: job.tres
        for job in sacct.read_json((folder / "sacct-all.json").read_bytes()).rows
    }
    assert held[3] == "cpu=16,mem=65536,node=1,gres/gpu=2"
    assert held[4] == "cpu=192,mem=192000,node=3"


def test_the_queue_in_columns(folder: Path) -> None:
    columns = squeue.QUEUE.read((folder / "squeue-runs.txt").read_text())
    assert (len(columns.rows), columns.unreadable) == (38, ())


def test_accounts_people_and_qualities(folder: Path) -> None:
    found = sacctmgr.ASSOCIATIONS.read((folder / "associations-plain.txt").read_text())
    assert found.unreadable == ()
    told = [(each.account, each.user, each.parent, each.shares) for each in found.rows]
    assert {
        ("wg_astro", "", "root", "50"),
        ("wg_bio", "carol", "", "20"),
        ("wg_chem", "dave", "", "parent"),
    } <= set(told)
    qualities = sacctmgr.QOS.read((folder / "qos-plain.txt").read_text()).rows
    assert [(each.name, each.priority) for each in qualities] == [
        ("normal", 0),
        ("high", 100),
        ("low", 1),
    ]


def test_the_machine_and_its_settings(folder: Path) -> None:
    places = machine.read_partitions((folder / "partitions-oneliner.txt").read_text())
    assert [(each.name, each.weights, each.memory_per_cpu) for each in places.rows] == [
        ("cpu", "CPU=1.0,Mem=0.5G", 1000),
        ("gpu", "CPU=1.0,Mem=0.09375G,GRES/gpu=12.0", 1000),
        ("gpu-t4", "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0", 1000),
    ]
    nodes = machine.read_nodes((folder / "nodes-oneliner.txt").read_text())
    assert [(each.name, each.gpus) for each in nodes.rows if each.gpus] == [
        ("g01", ("a100",)), ("g02", ("a100",)), ("g03", ("t4",)), ("g04", ("t4",)),
    ]  # fmt: skip
    hosts = machine.read_hosts((folder / "nodes-oneliner.txt").read_text())
    rules = machine.read_partition_rules((folder / "partitions-oneliner.txt").read_text())
    reserved = machine.read_reservations((folder / "reservations-oneliner.txt").read_text())
    assert (
        places.unreadable
        == nodes.unreadable
        == hosts.unreadable
        == rules.unreadable
        == reserved.unreadable
        == ()
    )
    assert [each.name for each in reserved.rows] == ["course"]
    settings = config.read_settings(config.read_config((folder / "config.txt").read_text()))
    assert (settings.by_factors, settings.fair_share.tick_seconds) == (True, 60)


def test_jobs_that_wait_and_run(folder: Path) -> None:
    """But for two with line ends in their names, which 26.05 tells twice: in SubmitLine too."""
    text = (folder / "jobs-oneliner.txt").read_text()
    found, waiting = jobs.read_jobs(text), job_lines.read_pending(text)
    assert {
        re.sub(r"\W.*", "", each.field) for each in (*found.unreadable, *waiting.unreadable)
    } == {"UserId", "JobId"}
    assert len(found.unreadable) == len(waiting.unreadable) == (6 if "SubmitLine=" in text else 4)
    assert len(waiting.rows) == 4
    states = {job.job_id: (job.state, job.tres.get("cpu")) for job in found.rows}
    assert states[31] == ("RUNNING", 16)
    assert states[36] == ("PENDING", 6)
    assert [job.job_id for job in found.rows if job.wanted.exclusive] == [36]


def test_fair_share_in_the_columns_that_sshare_prints(folder: Path) -> None:
    header, *rows = [line.split("|") for line in (folder / "sshare.txt").read_text().splitlines()]
    assert set(header) <= {*sshare.SHARE_COLUMNS, "Partition", "GrpTRESMins", "TRESRunMins"}
    assert [row[header.index("Account")].strip() for row in rows].count("wg_bio") == 3


def test_whole_nodes_in_the_words_of_2605() -> None:
    """As its scontrol told partitions made with oversubscribe=exclusive, exclusiveuser=yes and
    oversubscribe=force:2.
    """
    text = "PartitionName=a Exclusive=NODE Nodes=c01 OverSubscribe=NO State=UP MaxTime=UNLIMITED\n"
    by_user = text.replace("=NODE", "=USER").replace("=a ", "=b ")
    forced = (
        text.replace("=NODE", "=NO").replace("=NO State", "=FORCE:2 State").replace("=a ", "=c ")
    )
    found = machine.read_partition_rules(text + by_user + forced)
    assert found.unreadable == ()
    assert [(each.sharing.name, each.rows) for each in found.rows] == [
        ("EXCLUSIVE", 4),
        ("NO", 4),
        ("FORCE", 2),
    ]
