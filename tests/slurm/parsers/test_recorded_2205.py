"""Recorded output of Slurm 22.05. Damaged lines are reported by line and field, and affect no other
line.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import config, machine, sacct, sacctmgr, squeue, sshare
from fairbank.slurm.parsers.columns import read_rows, split_records
from fairbank.slurm.parsers.config import Version, read_version, support_note
from fairbank.slurm.parsers.values import ParsedRows
from fairbank.slurm.reconcile.restarts import restart_count
from tests.slurm.lab.recorder import SACCT
from tests.support.recorded_slurm import line

GOLDEN = Path(__file__).parents[2] / "golden"


def recorded(version: str, name: str) -> str:
    return (GOLDEN / f"slurm-{version}" / name).read_text()


def by_run(parsed: ParsedRows[AccountingJob]) -> dict[tuple[int, int], AccountingJob]:
    return {(job.job_id, job.submitted): job for job in parsed.rows}


# --- 22.05, recorded ---


def test_accounting_of_2205() -> None:
    parsed = sacct.JOBS.read(recorded("22.05", "sacct-runs.txt"))
    assert parsed.unreadable == ()
    assert len(parsed.rows) == 37
    overdue, fit, align, render = parsed.rows[:4]
    assert (
        overdue.job_id,
        overdue.state,
        overdue.elapsed,
        overdue.limit_seconds,
        overdue.owner,
    ) == (1, "TIMEOUT", 87, 60, 60604)
    assert (overdue.submitted, overdue.start, overdue.end) == (1795278540, 1795278542, 1795278629)
    assert (fit.tres, fit.qos, fit.partition, fit.account) == (
        "cpu=4,mem=4000M,node=1",
        "normal",
        "cpu",
        "wg_astro",
    )
    assert align.tres == "cpu=16,gres/gpu=2,mem=64G,node=1"
    assert render.tres == "cpu=192,mem=187.50G,node=3"
    states = [job.state for job in parsed.rows]
    assert {
        "REQUEUED",
        "NODE_FAIL",
        "CANCELLED",
        "RUNNING",
        "PENDING",
        "FAILED",
        "TIMEOUT",
        "COMPLETED",
    } == set(states)
    assert all(job.has_ended == (job.state not in ("RUNNING", "PENDING")) for job in parsed.rows)
    assert all(job.is_complete for job in parsed.rows)
    waiting = next(job for job in parsed.rows if job.state == "PENDING")
    assert (waiting.start, waiting.end, waiting.tres) == (None, None, "cpu=6,mem=6000M,node=6")


@pytest.mark.parametrize(
    ("total", "seconds"),
    [
        ("00:00:00", None),
        ("", None),
        ("00:00.001", 0),
        ("00:00.499", 0),
        ("00:00.500", 1),
        ("59:59", 3_599),
        ("23:00:01", 82_801),
        ("12-01:02:03", 1_040_523),
    ],
)
def test_cpu_time_is_read_and_rounded_as_by_seff(total: str, seconds: int | None) -> None:
    parsed = sacct.JOB_ENDS.read(
        line(7, "2026-11-21T10:00:00", "1:9", total)
        + line("7.extern", "2026-11-21T10:00:00", "0:0", "00:01")
    )
    assert parsed.unreadable == ()
    assert [(end.exit_code, end.cpu_seconds) for end in parsed.rows] == [((1, 9), seconds)]


@pytest.mark.parametrize(
    ("code", "total", "field"),
    [("1", "00:01", "ExitCode"), ("256:0", "00:01", "ExitCode"), ("0:0", "1", "TotalCPU")],
)
def test_invalid_ends_are_reported(code: str, total: str, field: str) -> None:
    parsed = sacct.JOB_ENDS.read(line(7, "2026-11-21T10:00:00", code, total))
    assert ([line.field for line in parsed.unreadable], parsed.rows) == ([field], ())


def test_memory_is_that_of_all_tasks_of_a_step() -> None:
    at = "2026-11-21T10:00:00"
    parsed = sacct.MEASURED_STEPS.read(
        line(7, at, "", "", 9, "") + line("7.batch", at, 1, "3108K", 9, "cpu=1,gres/gpuutil=150")
        + line("7.0", at, 4, "2048.50K", 4, "cpu=1,mem=3K") + line("7.1", at, "", "", 4, "")
        + line(8, at, "", "lots", 4, "")
    )  # fmt: skip
    assert [row.gpu_seconds for row in parsed.rows] == [None, 13.5, None, None]
    assert [(row.job_id, row.peak) for row in parsed.rows] == [
        (7, None), (7, 3_108), (7, 4 * 2_048), (7, 0),
    ]  # fmt: skip
    assert [bad.field for bad in parsed.unreadable] == ["MaxRSS"]


def test_incomplete_record_has_no_uid() -> None:
    complete = ("0", "root", "chem", "cpu", "normal", 60, "cpu=1", "cpu=1")
    incomplete = ("0", "alice", "chem", "", "", "", "", "")
    times = ("2026-11-21T10:00:00", "2026-11-21T10:00:01", "2026-11-21T10:00:04", 3, "CANCELLED")
    parsed = sacct.JOBS.read(
        "".join(
            line(number, *times, *rest)
            for number, rest in enumerate((complete, incomplete), start=1)
        )
    )
    assert [(job.user, job.owner, job.is_complete) for job in parsed.rows] == [
        ("root", 0, True),
        ("alice", None, False),
    ]


def test_requeued_job_has_two_executions() -> None:
    again = [
        job for job in sacct.JOBS.read(recorded("22.05", "sacct-runs.txt")).rows if job.job_id == 19
    ]
    assert [job.state for job in again] == ["REQUEUED", "RUNNING"]
    assert again[0].end is not None
    assert 0 <= again[1].submitted - again[0].end <= 1
    assert [restart_count(job, again) for job in again] == [0, 1]


def test_strange_names_affect_only_their_lines() -> None:
    """The recording has the column JobName. The four halves of two jobs with a line end in their
    names are reported; the others are read.
    """
    records = split_records("sacct", recorded("22.05", "sacct-separated.txt"), SACCT)
    parsed = read_rows("sacct", records, sacct.read_job)
    assert [(line.line, line.field) for line in parsed.unreadable] == [
        (25, "JobName"),
        (26, "DBIndex"),
        (27, "JobName"),
        (28, "DBIndex"),
    ]
    assert all("cells instead of 28" in line.why for line in parsed.unreadable)
    assert len(parsed.rows) == 35
    assert {23, 26, 27, 28, 29, 30} <= {job.job_id for job in parsed.rows}
    assert {24, 25}.isdisjoint(job.job_id for job in parsed.rows)


def test_pipes_as_delimiters_break_names_with_pipes() -> None:
    lines = recorded("22.05", "sacct-duplicates.txt").partition("\n")[2]
    parsed = read_rows("sacct", split_records("sacct", lines, SACCT, "|"), sacct.read_job)
    assert 23 not in {job.job_id for job in parsed.rows}
    assert (
        str(parsed.unreadable[0]) == "sacct, line 2, Cluster: 29 cells instead of 28:"
        " '2|2|fit|alice|users|wg_astro|cpu|normal|'"
    )


def test_queue_of_2205_is_read() -> None:
    columns = squeue.QUEUE.read(recorded("22.05", "squeue-runs.txt"))
    assert columns.unreadable == ()
    assert len(columns.rows) == 38


def test_associations_and_qos_of_2205() -> None:
    parsed = sacctmgr.ASSOCIATIONS.read(recorded("22.05", "associations-plain.txt"))
    assert parsed.unreadable == ()
    rows = [
        (association.account, association.user, association.parent, association.shares)
        for association in parsed.rows
    ]
    assert ("wg_astro", "", "root", "50") in rows
    assert ("wg_bio", "carol", "", "20") in rows
    assert ("wg_chem", "dave", "", "parent") in rows
    qos_list = sacctmgr.QOS.read(recorded("22.05", "qos-plain.txt"))
    assert [(qos.name, qos.priority, qos.factor) for qos in qos_list.rows] == [
        ("normal", 0, "1.000000"), ("high", 100, "1.000000"), ("low", 1, "1.000000"),
    ]  # fmt: skip
    assert (
        sacctmgr.COORDINATORS.read(recorded("22.05", "coordinators.txt")).rows[1].coordinators == ()
    )
    assert sacctmgr.COORDINATORS.read("wg_bio|carol,bob\n").rows[0].coordinators == ("carol", "bob")


def test_partitions_and_nodes_of_2205() -> None:
    partitions = machine.read_partitions(recorded("22.05", "partitions-oneliner.txt"))
    assert partitions.unreadable == ()
    assert [
        (partition.name, partition.weights, partition.default_minutes, partition.memory_per_cpu)
        for partition in partitions.rows
    ] == [
        ("cpu", "CPU=1.0,Mem=0.5G", 30, 1000),
        ("gpu", "CPU=1.0,Mem=0.09375G,GRES/gpu=12.0", 30, 1000),
        ("gpu-t4", "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0", 30, 1000),
    ]
    nodes = machine.read_nodes(recorded("22.05", "nodes-oneliner.txt"))
    assert nodes.unreadable == ()
    assert [(node.name, node.cpus, node.memory, node.gpus) for node in nodes.rows if node.gpus] == [
        ("g01", 48, 512000, ("a100",)), ("g02", 48, 512000, ("a100",)), ("g03", 64, 131072, ("t4",
        )), ("g04", 64, 131072, ("t4",)),
    ]  # fmt: skip
    assert config.read_config(recorded("22.05", "config.txt"))["ClusterName"] == "lab"


def test_usage_counts_billing_minutes() -> None:
    text = (
        "root||1039|cpu=0\nwg_bio||734|cpu=464,mem=1,billing=697,gres/gpu=58\n"
        " wg_bio|bob|719|billing=697\n"
    )
    parsed = sshare.USAGE.read(text)
    assert [(usage.account, usage.seconds, usage.running) for usage in parsed.rows] == [
        ("root", 1039, 0),
        ("wg_bio", 734, 697),
    ]


# --- since 23.11; recordings are in tests/slurm/parsers/test_recorded_releases.py ---


def test_plain_numbers_may_become_objects_in_later_releases() -> None:
    data = json.loads(recorded("24.11", "sacct-all.json"))
    for row in data["jobs"]:
        times = {name: row["time"][name] for name in ("submission", "start", "end", "elapsed")}
        row["time"] |= {
            name: {"set": number > 0, "infinite": False, "number": number}
            for name, number in times.items()
        }
        row["state"]["current"] = row["state"]["current"][-1]
    before = sacct.read_json(recorded("24.11", "sacct-all.json").encode())
    assert sacct.read_json(json.dumps(data).encode()).rows == before.rows


def test_incomplete_json_job_affects_only_itself() -> None:
    jobs = json.loads(recorded("24.11", "sacct-all.json"))
    jobs["jobs"][2]["time"]["submission"] = 0
    jobs["jobs"][4]["state"]["current"], jobs["jobs"][5]["tres"]["allocated"][0]["count"] = [], -3
    parsed = sacct.read_json(json.dumps(jobs).encode())
    assert [(line.line, line.field) for line in parsed.unreadable] == [(3, "Submit"), (5, "State")]
    assert len(parsed.rows) == len(jobs["jobs"]) - 2
    gaps = [(gap.line, gap.field) for job in parsed.rows for gap in job.price_gaps]
    assert gaps == [(6, "AllocTRES")]


def test_unset_or_infinite_limit_is_none() -> None:
    data = json.loads(recorded("24.11", "sacct-all.json"))
    data["jobs"][0]["time"]["limit"] |= {"set": False, "number": 0}
    data["jobs"][1]["time"]["limit"] |= {"infinite": True}
    assert [job.limit_seconds for job in sacct.read_json(json.dumps(data).encode()).rows[:3]] == [
        None,
        None,
        1800,
    ]


@pytest.mark.parametrize("text", [b"", b"[]", b'{"jobs": 1}', b"<html>", b'{"jobs": [', b"\xff"])
def test_invalid_json_is_reported(text: bytes) -> None:
    with pytest.raises(InvalidInput, match="--json"):
        sacct.read_json(text)


# --- versions ---


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("slurm-wlm 22.05.8\n", (22, 5, 8)),
        ("slurm 24.05.3", (24, 5, 3)),
        ("slurm 23.11.10-2", (23, 11, 10)),
        ("slurm 25.05.0-0rc1", (25, 5, 0)),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, int, int]) -> None:
    assert read_version(text) == Version(*version)


@pytest.mark.parametrize("text", ["", "slurm", "slurm 20.11.9", "bash 5.2", "slurm 22.05"])
def test_unknown_versions_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_version(text)


def test_unrecorded_version_is_not_called_known() -> None:
    assert support_note(read_version("slurm-wlm 22.05.8")) == "its answers are known"
    assert support_note(read_version("slurm-wlm 24.11.5")) == "its answers are known"
    for other in ("23.02.1", "99.11.0"):
        assert support_note(read_version(f"slurm {other}")).startswith(
            "its answers were never recorded, only those of 22.05, 23.11, "
        )
