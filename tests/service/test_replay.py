"""Replays: the checks of a bank that writes off unpaid usage, and of one that records it."""

from __future__ import annotations

import gc
import os
import tracemalloc
from functools import partial
from pathlib import Path

import pytest

from fairbank.bank.policy import Overrun, Policy
from fairbank.bank.query import GroupPage, Page, RunQuery, UsageQuery
from fairbank.cluster.job import JobDetails
from fairbank.core.errors import InvalidInput
from fairbank.core.usage_groups import UsageBy
from fairbank.service.ledger import Ledger
from fairbank.service.simulation.replay import replay
from fairbank.service.simulation.trace_files import open_trace
from fairbank.simulator.engine.replay_requests import ReplayPlan
from fairbank.simulator.results.replay_result import ReplayResult
from fairbank.store.factory import open_store
from fairbank.store.memory.store import MemoryStore
from fairbank.store.migration import migrate

# The job uses 60 minutes; 54 are granted, and 30 are held because its limit is shorter.
ONE_JOB = """\
; UnixStartTime: 843466800
  1 0 0 3600 1 -1 -1 1 1800 -1 1 12 7 1 1 1 -1 -1
"""


def replay_one_job(path: Path, overrun: Overrun) -> ReplayResult:
    path.write_text(ONE_JOB)
    return replay(
        Ledger(MemoryStore(), Policy(overrun=overrun)),
        partial(open_trace, path),
        ReplayPlan(cluster="trace"),
    )


@pytest.mark.parametrize(
    ("overrun", "available", "off", "claim"),
    [
        (Overrun.WRITE_OFF, 0, 6, "no allocation is overdrawn"),
        (Overrun.RECORD, -6, 0, "no allocation is overdrawn by more than its recorded overruns"),
    ],
)
def test_every_invariant_of_the_policy_holds(
    tmp_path: Path, overrun: Overrun, available: int, off: int, claim: str
) -> None:
    result = replay_one_job(tmp_path / "one.swf", overrun)
    assert ([allocation.remaining for allocation in result.allocations], result.written_off) == (
        [available],
        {"cpu": off},
    )
    assert (result.checks[0].what, result.checks[0].figures) == (
        claim,
        f"the least remaining is {available} SU-minutes",
    )
    assert [check.what for check in result.checks if not check.holds_true] == []


def test_amounts_of_two_resources_are_not_added(tmp_path: Path) -> None:
    """Two jobs at the same time: 2 processors for an hour, and one beside a GPU for half an hour.
    Of each nine tenths are granted, and the limit of both is a quarter of an hour.
    """
    path = tmp_path / "two.swf"
    path.write_text(
        "; UnixStartTime: 843466800\n; Partition: 1 batch\n; Partition: 2 gpu\n"
        "  1 0 0 3600 2 -1 -1 2 900 -1 1 12 7 1 1 1 -1 -1\n"
        "  2 0 0 1800 1 -1 -1 1 900 -1 1 12 7 1 1 2 -1 -1\n"
    )
    result = replay(
        Ledger(MemoryStore(), Policy()), partial(open_trace, path), ReplayPlan(cluster="trace")
    )
    assert result.held_peak == {"cpu": 2 * 15, "gpu": 15}
    assert result.expected == {"cpu": 120, "gpu": 30}
    assert result.written_off == {"cpu": 12, "gpu": 3}
    assert {check.figures for check in result.checks} >= {
        "0 runs open, 0 SU-minutes of cpu, 0 SU-minutes of gpu held",
        "108 of cpu charged, 108 due, 12 written off; 27 of gpu charged, 27 due, 3 written off",
    }


def test_pipe_is_refused(tmp_path: Path) -> None:
    """The refusal comes before any reading: the writer of the pipe may not have begun."""
    pipe = tmp_path / "trace.fifo"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDWR)  # opening a pipe blocks until it has a reader
    try:
        with pytest.raises(InvalidInput) as error:
            replay(
                Ledger(MemoryStore(), Policy()),
                partial(open_trace, pipe),
                ReplayPlan(cluster="trace"),
            )
    finally:
        os.close(descriptor)
    assert error.value.message == f"{pipe} is a pipe, and a replay reads its trace twice"
    assert (error.value.field, error.value.remedy) == (
        "FILE",
        "write it to a file first, and name that",
    )


@pytest.mark.parametrize("minutes", [60, 59], ids=["the same", "with other figures"])
@pytest.mark.parametrize("between", [0, 600], ids=["next to it", "in another batch"])
@pytest.mark.parametrize("limit", [1_800, 720_000], ids=["paid", "refused"])
def test_duplicate_job_is_reported_with_both_lines(
    tmp_path: Path, minutes: int, between: int, limit: int
) -> None:
    trace, job = tmp_path / "twice.swf", f"1 0 {{}} {{}} 1 -1 -1 1 {limit} -1 1 12 7 1 1 1 -1 -1\n"
    others = [f"{number} {job[2:].format(0, 60)}" for number in range(2, 2 + between)]
    trace.write_text(
        "".join(
            [
                "; UnixStartTime: 843466800\n",
                job.format(0, 3600),
                *others,
                job.format(0, minutes * 60),
            ]
        )
    )
    with pytest.raises(InvalidInput) as error:
        replay(
            Ledger(MemoryStore(), Policy()), partial(open_trace, trace), ReplayPlan(cluster="trace")
        )
    assert error.value.message == f"line {3 + between}: job 1 stands in line 2 already"
    assert error.value.field == "FILE"


@pytest.mark.parametrize("percent", [10, 1_000], ids=["most are refused", "all are paid"])
def test_memory_does_not_grow_with_the_trace(tmp_path: Path, percent: int) -> None:
    """Jobs run one after the other, in a store on disk: five times as many jobs need no more
    memory.
    """
    short, long = (_memory_at_the_end(tmp_path / str(jobs), jobs, percent) for jobs in (300, 1_500))
    assert long - short < 100_000  # 80 bytes per further job; a refused run alone takes 500


def _memory_at_the_end(folder: Path, jobs: int, percent: int) -> int:
    """Return the bytes that are still in use when the last job has ended."""
    folder.mkdir()
    trace, url, used = folder / "long.swf", f"sqlite:///{folder / 'bank.sqlite'}", 0
    lines = (
        f"{number} {10 * number} 0 5 1 -1 -1 1 60 -1 1 12 7 1 1 1 -1 -1\n"
        for number in range(1, jobs + 1)
    )
    trace.write_text("".join(["; UnixStartTime: 843466800\n", *lines]))

    def measure(what: str, result: int, of: int) -> None:
        nonlocal used
        if what == "replaying" and result == of:
            gc.collect()
            used = tracemalloc.get_traced_memory()[0]

    migrate(url)
    store = open_store(url)
    tracemalloc.start()
    try:
        replay(
            Ledger(store, Policy()),
            partial(open_trace, trace),
            ReplayPlan(cluster="trace", percent=percent),
            measure,
        )
    finally:
        tracemalloc.stop()
        store.close()
    return used


def test_replay_reports_the_queue_as_qos(tmp_path: Path) -> None:
    """The header may name the queue; a sentence in it is not a name."""
    trace, store = tmp_path / "queues.swf", MemoryStore()
    lines = ["; UnixStartTime: 843466800", "; Queue: 1 short", "; Queue: 2 for long jobs"]
    lines += [
        f"{number} {number} 0 60 1 -1 -1 1 60 -1 1 12 7 1 {queue} 1 -1 -1"
        for number, queue in enumerate((1, 2, 0, -1), 1)
    ]
    trace.write_text("\n".join([*lines, ""]))
    replay(
        Ledger(store, Policy()),
        partial(open_trace, trace),
        ReplayPlan(cluster="trace", percent=100),
    )
    with store.reading() as reader:
        groups = [
            (group.group, group.runs)
            for group in reader.usage(UsageQuery(), UsageBy.QOS, GroupPage())
        ]
    assert groups == [("-", 1), ("queue0", 1), ("queue2", 1), ("short", 1)]


def test_replay_reports_the_used_processor_time(tmp_path: Path) -> None:
    """Four processors requested, eight allocated, each busy for a quarter of the hour; then a job
    whose log lacks the used time.
    """
    trace, store = tmp_path / "busy.swf", MemoryStore()
    lines = [
        "; UnixStartTime: 843466800",
        "1 0 60 3600 8 900 -1 4 1800 -1 1 12 7 1 1 1 -1 -1",
        "2 0 0 60 1 -1 -1 1 60 -1 1 12 7 1 1 1 -1 -1",
    ]
    trace.write_text("\n".join([*lines, ""]))
    replay(Ledger(store, Policy()), partial(open_trace, trace), ReplayPlan(cluster="trace"))
    with store.reading() as reader:
        (used,) = reader.usage(UsageQuery(), UsageBy.USER, GroupPage())
        output = {
            run.reported.run.job_id: run.reported.job_details
            for run in reader.runs(RunQuery(), Page())
        }
    assert (used.cpu_seconds, used.given_seconds, used.waited_seconds) == (8 * 900, 8 * 3_600, 60)
    assert output == {
        1: JobDetails(cpus=8, qos="queue1", tres="cpu=8", limit_seconds=1_800, cpu_seconds=7_200),
        2: JobDetails(cpus=1, qos="queue1", tres="cpu=1", limit_seconds=60),
    }
