"""Recorded output of each release but the oldest (see test_recorded_2205.py): all of it is read,
and both formats agree.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.core.tres import parse_counts
from fairbank.slurm.parsers import config, job_lines, jobs, machine, sacct, sacctmgr, squeue, sshare
from fairbank.slurm.parsers.config import COMPLETE_JSON, RECORDED, read_version, support_note

GOLDEN = Path(__file__).parents[2] / "golden"
NEWER = sorted(
    f"{year}.{month:02}" for year, month in RECORDED if (year, month) >= COMPLETE_JSON[:2]
)


def test_newer_release_is_recorded() -> None:
    assert "24.11" in NEWER


@pytest.fixture(params=NEWER)
def folder(request: pytest.FixtureRequest) -> Path:
    return GOLDEN / f"slurm-{request.param}"


def comparable(job: AccountingJob) -> AccountingJob:
    """Return the job without fields that only one format has, and with TRES in one order and in
    MiB.
    """
    counts = sorted((name, float(count)) for name, count in parse_counts(job.tres).items())
    return msgspec.structs.replace(
        job,
        owner=None,
        restart=None,
        elapsed=0,
        tres=",".join(f"{name}={count}" for name, count in counts),
    )


def test_version_is_known(folder: Path) -> None:
    version = read_version((folder / "version.txt").read_text())
    assert folder.name == f"slurm-{version.year}.{version.month:02}"
    assert support_note(version) == "its answers are known"


def test_json_and_columns_agree(folder: Path) -> None:
    columns = sacct.JOBS.read((folder / "sacct-runs.txt").read_text())
    from_json = sacct.read_json((folder / "sacct-all.json").read_bytes())
    assert columns.unreadable == from_json.unreadable == ()
    assert [comparable(job) for job in from_json.rows] == [comparable(job) for job in columns.rows]
    assert {job.state for job in from_json.rows} == {
        "REQUEUED", "NODE_FAIL", "CANCELLED", "RUNNING", "PENDING", "FAILED", "TIMEOUT",
        "COMPLETED",
    }  # fmt: skip
    assert all(job.is_complete for job in columns.rows)


def test_json_counts_restarts_since_2411(folder: Path) -> None:
    counts = (0, 1) if folder.name >= "slurm-24.11" else (None, None)
    again = [
        job
        for job in sacct.read_json((folder / "sacct-all.json").read_bytes()).rows
        if job.job_id == 19
    ]
    states = ("REQUEUED", "RUNNING")
    assert [(job.state, job.restart) for job in again] == list(zip(states, counts, strict=True))


def test_gpus_and_whole_nodes_are_reported(folder: Path) -> None:
    held = {
        job.job_id: job.tres
        for job in sacct.read_json((folder / "sacct-all.json").read_bytes()).rows
    }
    assert held[3] == "cpu=16,mem=65536,node=1,gres/gpu=2"
    assert held[4] == "cpu=192,mem=192000,node=3"


def test_queue_columns_are_read(folder: Path) -> None:
    columns = squeue.QUEUE.read((folder / "squeue-runs.txt").read_text())
    assert (len(columns.rows), columns.unreadable) == (38, ())


def test_associations_and_qos(folder: Path) -> None:
    parsed = sacctmgr.ASSOCIATIONS.read((folder / "associations-plain.txt").read_text())
    assert parsed.unreadable == ()
    rows = [
        (association.account, association.user, association.parent, association.shares)
        for association in parsed.rows
    ]
    assert {
        ("wg_astro", "", "root", "50"),
        ("wg_bio", "carol", "", "20"),
        ("wg_chem", "dave", "", "parent"),
    } <= set(rows)
    qos_list = sacctmgr.QOS.read((folder / "qos-plain.txt").read_text()).rows
    assert [(qos.name, qos.priority) for qos in qos_list] == [
        ("normal", 0),
        ("high", 100),
        ("low", 1),
    ]


def test_machine_and_settings_are_read(folder: Path) -> None:
    partitions = machine.read_partitions((folder / "partitions-oneliner.txt").read_text())
    assert [
        (partition.name, partition.weights, partition.memory_per_cpu)
        for partition in partitions.rows
    ] == [
        ("cpu", "CPU=1.0,Mem=0.5G", 1000),
        ("gpu", "CPU=1.0,Mem=0.09375G,GRES/gpu=12.0", 1000),
        ("gpu-t4", "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0", 1000),
    ]
    nodes = machine.read_nodes((folder / "nodes-oneliner.txt").read_text())
    assert [(node.name, node.gpus) for node in nodes.rows if node.gpus] == [
        ("g01", ("a100",)), ("g02", ("a100",)), ("g03", ("t4",)), ("g04", ("t4",)),
    ]  # fmt: skip
    hosts = machine.read_hosts((folder / "nodes-oneliner.txt").read_text())
    rules = machine.read_partition_rules((folder / "partitions-oneliner.txt").read_text())
    reserved = machine.read_reservations((folder / "reservations-oneliner.txt").read_text())
    assert (
        partitions.unreadable
        == nodes.unreadable
        == hosts.unreadable
        == rules.unreadable
        == reserved.unreadable
        == ()
    )
    assert [reservation.name for reservation in reserved.rows] == ["course"]
    settings = config.read_settings(config.read_config((folder / "config.txt").read_text()))
    assert (settings.by_factors, settings.fair_share.tick_seconds) == (True, 60)


def test_pending_and_running_jobs(folder: Path) -> None:
    """All but two jobs with line ends in their names are read. 26.05 prints such a name twice: in
    SubmitLine too.
    """
    text = (folder / "jobs-oneliner.txt").read_text()
    parsed, pending = jobs.read_jobs(text), job_lines.read_pending(text)
    assert {
        re.sub(r"\W.*", "", line.field) for line in (*parsed.unreadable, *pending.unreadable)
    } == {"UserId", "JobId"}
    assert len(parsed.unreadable) == len(pending.unreadable) == (6 if "SubmitLine=" in text else 4)
    assert len(pending.rows) == 4
    states = {job.job_id: (job.state, job.tres.get("cpu")) for job in parsed.rows}
    assert states[31] == ("RUNNING", 16)
    assert states[36] == ("PENDING", 6)
    assert [job.job_id for job in parsed.rows if job.wanted.exclusive] == [36]


def test_sshare_columns_are_known(folder: Path) -> None:
    header, *rows = [line.split("|") for line in (folder / "sshare.txt").read_text().splitlines()]
    assert set(header) <= {*sshare.SHARE_COLUMNS, "Partition", "GrpTRESMins", "TRESRunMins"}
    assert [row[header.index("Account")].strip() for row in rows].count("wg_bio") == 3


def test_exclusive_partitions_of_2605() -> None:
    """The partitions were created with oversubscribe=exclusive, exclusiveuser=yes and
    oversubscribe=force:2.
    """
    text = "PartitionName=a Exclusive=NODE Nodes=c01 OverSubscribe=NO State=UP MaxTime=UNLIMITED\n"
    by_user = text.replace("=NODE", "=USER").replace("=a ", "=b ")
    forced = (
        text.replace("=NODE", "=NO").replace("=NO State", "=FORCE:2 State").replace("=a ", "=c ")
    )
    parsed = machine.read_partition_rules(text + by_user + forced)
    assert parsed.unreadable == ()
    assert [(partition.sharing.name, partition.rows) for partition in parsed.rows] == [
        ("EXCLUSIVE", 4),
        ("NO", 4),
        ("FORCE", 2),
    ]
