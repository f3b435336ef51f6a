"""A replay: what its checks say of a bank that writes off what nobody can pay, and of one that records it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from fairbank.bank.policy import Overrun, Policy
from fairbank.bank.query import GroupPage, Page, RunQuery, UsageBy, UsageQuery
from fairbank.cluster.particulars import Particulars
from fairbank.service.bank import Bank
from fairbank.service.replay import Plan, Replayed, replay
from fairbank.service.traces import open_trace
from fairbank.store.memory import MemoryStore
from fairbank.values.trouble import Malformed

# Of 60 minutes that the one job uses, 54 are granted and, for its limit is shorter, 30 held.
ONE_JOB = """\
; UnixStartTime: 843466800
  1 0 0 3600 1 -1 -1 1 1800 -1 1 12 7 1 1 1 -1 -1
"""


def replayed(path: Path, overrun: Overrun) -> Replayed:
    path.write_text(ONE_JOB)
    return replay(Bank(MemoryStore(), Policy(overrun=overrun)), partial(open_trace, path), Plan(cluster="trace"))


@pytest.mark.parametrize(
    ("overrun", "available", "off", "said"),
    [
        (Overrun.WRITE_OFF, 0, 6, "no allocation is overdrawn"),
        (Overrun.RECORD, -6, 0, "no allocation is overdrawn by more than its recorded overruns"),
    ],
)
def test_every_invariant_of_the_policy_holds(tmp_path: Path, overrun: Overrun, available: int, off: int, said: str) -> None:
    done = replayed(tmp_path / "one.swf", overrun)
    assert ([each.available for each in done.balances], done.written_off) == ([available], off)
    assert (done.checks[0].what, done.checks[0].figures) == (said, f"the least available is {available} SU-minutes")
    assert [each.what for each in done.checks if not each.held] == []


@pytest.mark.parametrize("minutes", [60, 59], ids=["the same", "with other figures"])
@pytest.mark.parametrize("between", [0, 600], ids=["next to it", "in another batch"])
@pytest.mark.parametrize("limit", [1_800, 720_000], ids=["paid", "refused"])
def test_a_job_that_stands_twice_is_told_with_both_lines(tmp_path: Path, minutes: int, between: int, limit: int) -> None:
    trace, job = tmp_path / "twice.swf", f"1 0 {{}} {{}} 1 -1 -1 1 {limit} -1 1 12 7 1 1 1 -1 -1\n"
    others = [f"{number} {job[2:].format(0, 60)}" for number in range(2, 2 + between)]
    trace.write_text("".join(["; UnixStartTime: 843466800\n", job.format(0, 3600), *others, job.format(0, minutes * 60)]))
    with pytest.raises(Malformed) as told:
        replay(Bank(MemoryStore(), Policy()), partial(open_trace, trace), Plan(cluster="trace"))
    assert told.value.message == f"line {3 + between}: job 1 stands in line 2 already"
    assert told.value.field == "FILE"


def test_a_replay_tells_the_queue_of_a_job_as_its_qos(tmp_path: Path) -> None:
    """By its name, where the header has one; a sentence is none."""
    trace, store = tmp_path / "queues.swf", MemoryStore()
    lines = ["; UnixStartTime: 843466800", "; Queue: 1 short", "; Queue: 2 for long jobs"]
    lines += [f"{number} {number} 0 60 1 -1 -1 1 60 -1 1 12 7 1 {queue} 1 -1 -1" for number, queue in enumerate((1, 2, 0, -1), 1)]
    trace.write_text("\n".join([*lines, ""]))
    replay(Bank(store, Policy()), partial(open_trace, trace), Plan(cluster="trace", percent=100))
    with store.reading() as reader:
        groups = [(each.group, each.runs) for each in reader.usage(UsageQuery(), UsageBy.QOS, GroupPage())]
    assert groups == [("-", 1), ("queue0", 1), ("queue2", 1), ("short", 1)]


def test_a_replay_tells_how_well_processors_were_used(tmp_path: Path) -> None:
    """Four processors asked for, eight given, each busy for a quarter of the hour; then a job of which the log does not know it."""
    trace, store = tmp_path / "busy.swf", MemoryStore()
    lines = [
        "; UnixStartTime: 843466800",
        "1 0 60 3600 8 900 -1 4 1800 -1 1 12 7 1 1 1 -1 -1",
        "2 0 0 60 1 -1 -1 1 60 -1 1 12 7 1 1 1 -1 -1",
    ]
    trace.write_text("\n".join([*lines, ""]))
    replay(Bank(store, Policy()), partial(open_trace, trace), Plan(cluster="trace"))
    with store.reading() as reader:
        (used,) = reader.usage(UsageQuery(), UsageBy.USER, GroupPage())
        told = {run.run.job_id: run.particulars for run in reader.runs(RunQuery(), Page())}
    assert (used.cpu_seconds, used.given_seconds, used.waited_seconds) == (8 * 900, 8 * 3_600, 60)
    assert told == {
        1: Particulars(cpus=8, qos="queue1", tres="cpu=8", limit_seconds=1_800, cpu_seconds=7_200),
        2: Particulars(cpus=1, qos="queue1", tres="cpu=1", limit_seconds=60),
    }
