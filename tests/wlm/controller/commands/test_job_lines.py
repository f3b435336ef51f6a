"""Lines of jobs: Slurm's parsers read back what the core has, in every state of a job."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.time import LIMIT_MAX_SECONDS
from fairbank.report.slurm import scontrol
from fairbank.report.slurm.job_rows import NO_LIMIT, JobLine
from fairbank.report.slurm.notation import Notation
from fairbank.slurm.parsers.jobs import SlurmJob, read_jobs
from fairbank.wlm.controller.commands.job_lines import FIELDS, ShownJob, shown_tasks
from fairbank.wlm.core import events as ev
from tests.wlm.core.world import ALICE, OPERATOR, START, World, named, submission


def shown_job(world: World, number: int) -> ShownJob:
    return ShownJob(world.core.state, world.job(number), world.now)


def job_line(shown: ShownJob) -> JobLine:
    return JobLine(*shown.cells(JobLine._fields))


def line(world: World, number: int) -> JobLine:
    return job_line(shown_job(world, number))


def read_back(shown: JobLine) -> SlurmJob:
    """Return what Slurm's parser reads of the text that scontrol prints of a line."""
    text = scontrol.show(shown, scontrol.JOB, Notation(), is_one_line=True, has_details=True)
    parsed = read_jobs(text)
    assert not parsed.unreadable
    (job,) = parsed.rows
    return job


REQUESTS = st.builds(
    lambda nodes, more, tasks, per_task, memory, by_cpu, features: ResourceRequest(
        nodes=nodes,
        max_nodes=None if more is None else nodes + more,
        tasks=max(tasks, nodes),
        cpus_per_task=per_task,
        memory_per_node=None if by_cpu else memory,
        memory_per_cpu=max(memory, 1) if by_cpu else None,
        prefer=features,
    ),
    nodes=st.integers(1, 2),
    more=st.none() | st.integers(0, 3),
    tasks=st.integers(1, 4),
    per_task=st.integers(1, 2),
    memory=st.integers(0, 100),
    by_cpu=st.booleans(),
    features=st.sampled_from(["", "fast"]),
)


@given(
    REQUESTS,
    st.none() | st.integers(1, 100),
    st.integers(0, 10_000),
    st.sampled_from([None, "1-5", "0,3,9%2", "7"]),
    st.booleans(),
)
def test_pending_job_is_read_back(
    wanted: ResourceRequest, minutes: int | None, delay: int, array: str | None, held: bool
) -> None:
    world = World(cpus=8)
    limit = None if minutes is None else minutes * 60
    body = submission(limit=limit, eligible=START.wall + delay, array=array, held=held)
    job = msgspec.structs.replace(body.job, wanted=wanted)
    number = world.request(msgspec.structs.replace(body, job=job)).number
    record, job_shown = world.job(number), shown_job(world, number)
    shown = job_line(job_shown)
    read = read_back(shown)
    memory = None if wanted.memory_per_cpu else wanted.memory_per_node
    expected = {
        "tasks": wanted.least_tasks,
        "cpus_per_node": max(wanted.cpus_per_node, wanted.cpus_per_task),
        "memory_per_node": memory,
    }
    assert read.wanted == msgspec.structs.replace(wanted, **expected)
    assert (read.job_id, read.user, read.state) == (number, "alice", "PENDING")
    assert read.eligible == START.wall + delay
    assert read.reason == record.shown_reason(START.wall)
    assert read.tasks == (record.tasks if len(record.tasks) > 1 else ())
    assert (shown.label, shown.limit) == (record.name, limit or NO_LIMIT)
    tasks = [one.cells(["task"]) for one in shown_tasks(job_shown)]
    assert tasks == [[task] for task in record.tasks or [None]]


def test_running_job_has_its_nodes_and_shares() -> None:
    world = World()
    number = world.run_one(cpus=2, memory=100, limit=600)
    world.advance(60)
    read, shown = read_back(line(world, number)), line(world, number)
    assert (read.state, read.started, read.ends) == ("RUNNING", START.wall, START.wall + 600)
    assert [(one.nodes, one.cpus, one.memory) for one in read.allocated] == [(("n0",), 2, 100)]
    assert (shown.elapsed, shown.nodes, shown.batch_host) == (60, "n0", "n0")
    assert shown.allocated_tres == "cpu=2,mem=100M,node=1,billing=2"


@pytest.mark.parametrize(("script", "is_batch"), [("digest", True), ("", False)])
def test_only_a_job_with_a_script_is_a_batch_job(script: str, is_batch: bool) -> None:
    world = World()
    shown = line(world, world.submit(script=script, submit_host="login"))
    text = scontrol.show(shown, scontrol.JOB, Notation(), is_one_line=True)
    assert (shown.is_batch, f" BatchFlag={int(is_batch)} " in text) == (is_batch, True)


def test_job_whose_script_has_not_begun_shows_its_allocation_as_start() -> None:
    world = World(socket="agent")
    number = world.submit(limit=600)
    world.settle()
    world.advance(5)
    read, shown = read_back(line(world, number)), line(world, number)
    assert (shown.state, shown.flag, read.state) == ("RUNNING", "CONFIGURING", "CONFIGURING")
    assert (read.started, read.ends) == (START.wall, START.wall + 600)
    assert shown.elapsed == 0


def test_ended_job_has_its_state_and_exit_code() -> None:
    world = World()
    number = world.run_one()
    world.advance(10)
    world.end(number, 3 << 8)
    world.advance(5)
    shown = line(world, number)
    assert (shown.state, shown.flag, shown.reason) == ("FAILED", "", "NonZeroExitCode")
    assert (shown.exit_code, shown.elapsed, shown.ends) == ((3, 0), 10, START.wall + 10)


def test_job_with_a_begin_time_starts_then() -> None:
    world = World()
    number = world.submit(eligible=START.wall + 3_600, limit=600)
    shown = line(world, number)
    assert (shown.started, shown.ends) == (START.wall + 3_600, START.wall + 4_200)
    world.advance(3_600)
    assert line(world, number).started is None


def test_longest_limit_is_shown_as_none() -> None:
    world = World(PartitionRules(name="main", is_default=True, max_seconds=600))
    number = world.submit(limit=LIMIT_MAX_SECONDS)
    world.settle()
    shown = line(world, number)
    assert (shown.limit, shown.reason) == (NO_LIMIT, "PartitionTimeLimit")


@pytest.mark.parametrize(("special", "flag"), [(False, ""), (True, "SPECIAL_EXIT")])
def test_job_that_is_requeued_and_held_says_so(special: bool, flag: str) -> None:
    world = World()
    number = world.run_one()
    world.request(ev.RequeueJob(named(number), held=True, special=special), OPERATOR)
    world.clear(number)
    shown = line(world, number)
    assert (shown.state, shown.flag, shown.priority) == ("PENDING", flag, 0)
    assert (shown.reason, shown.shown_reason) == ("JobHeldUser", "job requeued in held state")
    assert world.request(ev.ReleaseJob(named(number)), ALICE) is None


def test_job_that_the_bank_holds_shows_its_reason_and_sentence() -> None:
    world = World(socket="agent")
    number = world.submit()
    world.settle()
    world.answer_prologs("hold")
    shown = line(world, number)
    assert (shown.priority, shown.shown_reason, shown.admin_comment) == (
        0,
        "Allocation_exhausted",
        "no credit",
    )
    assert shown.nodes_or_reason == "(Allocation_exhausted)"


def test_hold_requeue_and_cancellation_show_flag_and_reason() -> None:
    world = World()
    running = world.run_one()
    held = world.submit(held=True)
    assert (line(world, held).priority, line(world, held).reason) == (0, "JobHeldUser")
    world.request(ev.RequeueJob(named(running), held=True), OPERATOR)
    assert (line(world, running).state, line(world, running).flag) == ("PENDING", "COMPLETING")
    world.request(ev.CancelJob(named(held)), ALICE)
    assert line(world, held).state == "CANCELLED"


@pytest.mark.parametrize(
    ("dependency", "shown"),
    [
        ("afterok:{0}", "afterok:{0}(unfulfilled)"),
        ("after:{0}+5", "after:{0}+5(unfulfilled)"),
        ("afterany:{0}?afternotok:{0}", "afterany:{0}(unfulfilled)?afternotok:{0}(unfulfilled)"),
        ("singleton", "singleton(unfulfilled)"),
    ],
)
def test_open_dependencies_are_shown_with_their_state(dependency: str, shown: str) -> None:
    world = World()
    parent = world.submit(held=True)
    number = world.submit(dependency=dependency.format(parent))
    assert line(world, number).dependency == shown.format(parent)
    assert read_back(line(world, number)).dependencies.items


def test_columns_that_are_not_known_have_their_default() -> None:
    world = World()
    number = world.submit()
    assert FIELDS.keys() <= set(JobLine._fields)
    assert shown_job(world, number).cells(["job_id", "session"]) == [number, 0]
