"""Runs: start, verdict, limits, end, requeue, failures, preemption, restart."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec import structs

from fairbank.cluster.partition_rules import (
    OverSubscribe,
    PartitionRules,
    PartitionState,
    PreemptMode,
)
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import Conflict, Forbidden
from fairbank.core.submission.values import WarningSignal
from fairbank.core.time import Instant
from fairbank.scheduling.machines.nodes import PreemptBy, Preemption
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.due_times import WARNING_DELAY
from fairbank.wlm.core.effects import AgentMessage, Send, StartRun
from fairbank.wlm.core.jobs import Moment
from fairbank.wlm.core.node_states import NodeCondition, NodeEvent
from fairbank.wlm.core.settings import JobSettings
from fairbank.wlm.core.snapshot import pass_snapshot
from fairbank.wlm.core.starts import NO_ANSWER
from fairbank.wlm.protocol.messages import EndCause, ForgetRun, SignalJob
from tests.wlm.core.world import ALICE, OPERATOR, World, named, run_status, submission

REQUEUE_SECONDS = JobSettings().requeue_wait + 1


def starts(world: World, number: int) -> int:
    """Return how many starts of a job its nodes have taken."""
    return sum(run.job_id == number for node in world.nodes.values() for run in node.begun)


# --- starts


def test_job_waits_for_its_begin_time_and_says_so() -> None:
    world = World()
    number = world.submit(eligible=world.now.wall + 100)
    world.settle()
    assert (world.state(number), world.reason(number)) == ("PENDING", "BeginTime")
    world.advance(100)
    world.settle()
    assert world.state(number) == "RUNNING CONFIGURING"


def test_job_without_cores_that_it_may_share_waits_for_the_end_of_another() -> None:
    """Both of the jobs that are left have the same core, so that only one core is not full."""
    main = PartitionRules(name="main", is_default=True, sharing=OverSubscribe.FORCE, rows=2)
    world = World(main, nodes=1, cpus=2)
    first, second, third, fourth = (world.run_one() for _ in range(4))
    for number in (first, third):
        world.end(number)
    waiting = world.submit(cpus=2)
    world.settle()  # no pass may request the next one
    assert (world.state(waiting), world.reason(waiting)) == ("PENDING", "Resources")
    world.end(second)
    world.settle()
    assert world.state(waiting) == "RUNNING CONFIGURING"
    assert world.state(fourth) == "RUNNING"


def test_starts_by_backfill_are_counted() -> None:
    world = World()
    world.run_one(cpus=4, limit=3_600)
    blocked = world.submit(cpus=4, nodes=2)
    array = world.submit(array="1-2", limit=600)
    world.submit(limit=7_200)  # it would delay the blocked job
    world.settle()
    assert world.reason(blocked) == "Resources"
    assert len([job for job in world.core.state.jobs.values() if job.request.array == array]) == 2
    assert world.core.state.backfilled == 2


def test_chain_of_dependencies_starts_one_after_the_other() -> None:
    world = World()
    first = world.submit()
    second = world.submit(dependency=f"afterok:{first}")
    third = world.submit(dependency=f"afterok:{second}", kill_invalid=True)
    fourth = world.submit(dependency=f"afternotok:{second}")
    world.settle()
    world.begin_all()
    assert world.reason(second) == "Dependency"
    world.end(first)
    world.settle()
    world.begin_all()
    world.end(second, status=256)
    world.settle()
    assert world.state(third) == "CANCELLED"
    assert world.state(fourth) == "RUNNING CONFIGURING"


def test_job_is_eligible_when_nothing_holds_it_and_keeps_why_it_waited() -> None:
    world = World()
    first = world.submit()
    waiting = world.submit(dependency=f"afterok:{first}")
    held = world.submit(held=True)
    world.settle()
    world.begin_all()
    jobs = world.core.state.jobs
    assert jobs[first].eligible_since == world.now.wall
    assert (jobs[waiting].eligible_since, jobs[waiting].waited_for) == (0, "Dependency")
    assert (jobs[held].eligible_since, jobs[held].waited_for) == (0, "JobHeldUser")
    world.advance(10)
    world.end(first)
    world.settle()
    assert jobs[waiting].eligible_since == world.now.wall
    assert (jobs[first].waited_for, jobs[waiting].waited_for) == ("None", "Dependency")
    world.request(ev.CancelJob(named(held)))
    assert (jobs[held].state.base, jobs[held].reason) == ("CANCELLED", "JobHeldUser")


def test_cancellation_of_an_ended_job_is_refused() -> None:
    world = World()
    number = world.submit()
    world.request(ev.CancelJob(named(number)))
    assert isinstance(world.request(ev.CancelJob(named(number))), Conflict)


def test_job_waits_for_all_tasks_of_an_array() -> None:
    world = World()
    array = world.submit(array="1-2")
    waiting = world.submit(dependency=f"afterok:{array}")
    world.settle()
    world.begin_all()
    for number in (3, array):
        assert world.state(waiting) == "PENDING"
        world.end(number)
        world.settle()
    assert world.state(waiting) == "RUNNING CONFIGURING"


def test_task_waits_for_the_task_of_the_same_number() -> None:
    world = World()
    array = world.submit(array="1-2")
    follower = world.submit(array="1-2", dependency=f"aftercorr:{array}")
    world.settle()
    world.begin_all()
    world.end(3)  # task 1
    world.settle()
    assert [
        job.name for job in world.core.state.jobs.values() if job.request.array == follower
    ] == [f"{follower}_[2]", f"{follower}_1"]
    world.end(array, status=256)
    world.settle()
    assert world.reason(follower) == "DependencyNeverSatisfied"


def test_singletons_of_a_user_run_one_after_the_other() -> None:
    world = World()
    jobs = [world.submit(dependency="singleton", name="nightly") for _ in range(3)]
    for number in jobs:
        world.settle()
        world.begin_all()
        assert [world.state(other) for other in jobs].count("RUNNING") == 1
        world.end(number)


def test_singleton_starts_when_the_job_before_it_gets_another_name() -> None:
    world = World()
    number = world.run_one(name="nightly")
    waiting = world.submit(dependency="singleton", name="nightly")
    world.request(ev.UpdateJob(jobs=named(number), name="weekly"))
    world.settle()
    assert world.state(waiting) == "RUNNING CONFIGURING"


def test_array_with_aftercorr_starts_when_the_minutes_of_another_item_have_passed() -> None:
    world = World()
    first, second = world.run_one(), world.run_one()
    waiting = world.submit(array="1", dependency=f"aftercorr:{first},after:{second}+4")
    world.end(first)
    world.advance(239)
    world.settle()
    assert world.reason(waiting) == "Dependency"
    world.advance(1)
    world.settle()
    assert world.state(waiting) == "RUNNING CONFIGURING"


def test_job_that_is_completing_meets_no_dependency_on_its_end() -> None:
    world = World()
    number = world.run_one(name="nightly")
    kinds = ("afterany", "afternotok", "afterok")
    waiting = [world.submit(dependency=f"{kind}:{number}", kill_invalid=True) for kind in kinds]
    singleton = world.submit(dependency="singleton", name="nightly")
    world.request(ev.CancelJob(named(number)))
    world.settle()
    assert world.state(number) == "CANCELLED COMPLETING"
    assert [world.reason(job) for job in waiting] == ["Dependency"] * 3
    assert world.state(singleton) == "RUNNING CONFIGURING"
    world.restart()
    world.clear(number)
    world.settle()
    started = "RUNNING CONFIGURING"
    assert [world.state(job) for job in waiting] == [started, started, "CANCELLED"]
    assert world.reason(waiting[2]) == "DependencyNeverSatisfied"


def test_dependency_stays_open_if_the_other_job_is_requeued_while_it_is_completing() -> None:
    world = World()
    number = world.run_one()
    waiting = world.submit(dependency=f"afterok:{number}", kill_invalid=True)
    world.request(ev.CancelJob(named(number)))
    world.request(ev.RequeueJob(named(number)))
    world.clear(number)
    assert world.state(number) == "PENDING"
    assert world.reason(waiting) == "Dependency"


def test_dependency_that_cannot_be_met_stays_unless_the_job_is_killed() -> None:
    world = World()
    number = world.run_one()
    waiting = world.submit(dependency=f"afterok:{number}")
    world.end(number, status=9)
    assert (world.state(waiting), world.reason(waiting)) == ("PENDING", "DependencyNeverSatisfied")


def test_after_with_minutes_starts_when_they_have_passed() -> None:
    world = World()
    number = world.run_one()
    waiting = world.submit(dependency=f"after:{number}+5")
    world.advance(299)
    world.settle()
    assert world.state(waiting) == "PENDING"
    world.advance(1)
    world.settle()
    assert world.state(waiting) == "RUNNING CONFIGURING"


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_minutes_of_after_count_from_the_begin_or_the_cancellation(is_cancelled: bool) -> None:
    world = World()
    number = world.submit(held=is_cancelled)
    waiting = world.submit(dependency=f"after:{number}+4")
    world.settle()
    world.advance(5)
    if is_cancelled:
        world.request(ev.CancelJob(named(number)))
    else:
        assert world.state(number) == "RUNNING CONFIGURING"
        assert world.reason(waiting) == "Dependency"
        world.begin_all()
    world.advance(239)
    world.settle()
    assert world.reason(waiting) == "Dependency"
    world.advance(1)
    world.settle()
    assert world.state(waiting) == "RUNNING CONFIGURING"


@pytest.mark.parametrize(
    "change", ["hold", "drain", "cancel", "partition", "begin", "limit", "cores", "memory"]
)
def test_plan_of_an_older_state_is_checked_again(change: str) -> None:
    world = World(nodes=1)
    number = world.submit(cpus=3 if change == "cores" else 1, memory=600)
    old = world.computed_plan()
    if change == "hold":
        world.request(ev.HoldJob(named(number)))
    elif change == "drain":
        world.request(ev.UpdateNode("n0", NodeEvent.DRAINED, "disk"), OPERATOR)
    elif change == "cancel":
        world.request(ev.CancelJob(named(number)))
    elif change == "partition":
        world.request(
            ev.UpdatePartition(PartitionRules(name="main", is_default=True, max_seconds=60)),
            OPERATOR,
        )
    elif change == "begin":
        later = world.now.wall + 100
        world.request(ev.UpdateJob(jobs=named(number), eligible=later))
    elif change == "limit":
        world.request(ev.UpdateJob(jobs=named(number), limit=300))
    else:
        world.submit(cpus=2, memory=600 if change == "memory" else 1)
        world.request(ev.TopJob(named(2)))
        world.plan()
    world.event(old)
    assert world.job(number).run is None
    assert starts(world, number) == 0


@pytest.mark.parametrize(("changes", "limit"), [({}, 360), ({"time_min": 480}, None)])
def test_plan_may_start_a_job_with_a_limit_down_to_its_least_one(
    changes: dict[str, Any], limit: int | None
) -> None:
    """Its nodes are reserved for another job, so that the plan shortens its limit."""
    world = World(nodes=1)
    world.run_one(cpus=2, limit=420)
    world.submit(cpus=4)
    number = world.submit(cpus=2, limit=600, time_min=60)
    old = world.computed_plan()
    if changes:
        assert world.request(ev.UpdateJob(jobs=named(number), **changes)) is None
    world.event(old)
    job = world.job(number)
    assert (None if job.run is None else job.request.limit) == limit


def test_pass_reads_the_state_of_its_begin_while_the_state_changes() -> None:
    world = World(nodes=2)
    running, waiting = world.run_one(cpus=4), world.submit(cpus=2)
    frozen, now = world.core.state.frozen(), world.now
    before = run_passes(pass_snapshot(frozen, now), SchedulerParameters(), now.wall)
    world.request(ev.CancelJob(named(running)))
    world.request(ev.TopJob(named(world.submit())))
    world.request(ev.HoldJob(named(waiting)))
    world.request(ev.UpdateNode("n1", NodeEvent.DRAINED, "disk"), OPERATOR)
    world.request(ev.UpdatePartition(PartitionRules(name="more")), OPERATOR)
    world.settle()
    assert before.starts != []
    assert run_passes(pass_snapshot(frozen, now), SchedulerParameters(), now.wall) == before
    assert world.computed_plan().plan != before


def test_limit_that_was_lowered_holds_for_the_starts_of_an_older_plan() -> None:
    world = World()
    world.submit(array="1-2%2")
    old = world.computed_plan()
    assert len(old.plan.starts) == 2
    world.request(ev.UpdateJob(jobs=named(1), throttle=1))
    world.event(old)
    assert [job.name for job in world.core.state.jobs.values()] == ["1_[2%1]", "1_1"]


def test_jobs_of_a_node_have_cores_of_their_own() -> None:
    world = World(nodes=1)
    runs = [world.job(world.run_one(cpus=cpus)).run for cpus in (1, 2, 1)]
    cores = [run.allocation.grants[0].binding.cores for run in runs if run is not None]
    assert cores == [(0,), (1, 2), (3,)]


@pytest.mark.parametrize("event", ["submission", "end", "partition", "node", "update", "time"])
def test_event_alone_starts_a_waiting_job(event: str) -> None:
    """Each requests a pass, which starts the job."""
    world = World(PartitionRules(name="main", is_default=True), nodes=1)
    later = world.now.wall + 100
    running = world.run_one(cpus=4) if event == "end" else 0
    if event == "partition":
        down = PartitionRules(name="main", is_default=True, state=PartitionState.DOWN)
        world.request(ev.UpdatePartition(down), OPERATOR)
    elif event == "node":
        world.request(ev.UpdateNode("n0", NodeEvent.DRAINED, "disk"), OPERATOR)
    if event != "submission":
        number = world.submit(cpus=4, eligible=later if event in ("update", "time") else 0)
        world.settle()
        assert world.state(number) == "PENDING"
    match event:
        case "submission":
            number = world.submit(cpus=4)
        case "end":
            world.end(running)
        case "partition":
            up = PartitionRules(name="main", is_default=True)
            world.request(ev.UpdatePartition(up), OPERATOR)
        case "node":
            world.request(ev.UpdateNode("n0", NodeEvent.RESUMED), OPERATOR)
        case "update":
            world.request(ev.UpdateJob(jobs=named(number), eligible=0))
        case "time":
            world.advance(100)
    world.settle()
    assert world.state(number) == "RUNNING CONFIGURING"


def test_job_of_four_cpus_on_four_whole_nodes_has_eight() -> None:
    """The example of the SLURM 2002 report."""
    world = World(nodes=4, cpus=2)
    body = submission()
    wanted = ResourceRequest(nodes=4, max_nodes=4, tasks=4, exclusive=True)
    world.request(structs.replace(body, job=structs.replace(body.job, wanted=wanted)))
    world.settle()
    run = world.job(1).run
    assert run is not None
    assert [grant.cpus for grant in run.allocation.grants] == [2, 2, 2, 2]


def test_job_waits_for_the_end_of_maintenance() -> None:
    world = World(nodes=1)
    now = world.now.wall
    maintenance = Reservation(
        name="maint", nodes=("n0",), begin=Instant(now + 100), end=Instant(now + 200),
        maintenance=True,
    )  # fmt: skip
    world.request(ev.SetReservation(maintenance), OPERATOR)
    number = world.submit(limit=600)
    world.settle()
    assert world.reason(number) == "ReqNodeNotAvail"
    world.advance(200)
    world.settle()
    assert world.state(number) == "RUNNING CONFIGURING"


def test_start_that_its_node_does_not_confirm_is_given_up_and_then_held() -> None:
    world = World(batch_start_timeout=10, max_batch_requeue=2)
    number = world.submit()
    for restarts in range(3):
        world.settle()
        assert world.state(number) == "RUNNING CONFIGURING"
        assert world.job(number).restarts == restarts
        world.advance(10)
        world.clear(number)
        world.advance(REQUEUE_SECONDS)
    assert world.reason(number) == "JobHoldMaxRequeue"
    world.settle()
    assert world.state(number) == "PENDING"


@pytest.mark.parametrize(("holds", "reason"), [(True, "JobHeldAdmin"), (False, "BeginTime")])
def test_failing_prolog_drains_the_node_and_requeues_the_job(holds: bool, reason: str) -> None:
    world = World(nodes=1, holds_after_prolog=holds)
    number = world.submit()
    world.settle()
    run = world.job(number).run
    assert run is not None
    world.nodes["n0"].runs[run.run] = "cleared"
    world.event(ev.RunChanged("n0", run_status(run.run, "cleared", cause="prolog")))
    assert world.core.state.nodes["n0"].reason == "Prolog error"
    assert (world.state(number), world.reason(number)) == ("PENDING", reason)


# --- bank


def test_bank_holds_a_job_with_its_word_until_an_operator_releases_it() -> None:
    world = World(socket="agent")
    number = world.submit()
    world.settle()
    assert starts(world, number) == 0
    world.answer_prologs("hold")
    assert (world.state(number), world.reason(number)) == ("PENDING", "Allocation_exhausted")
    assert world.job(number).admin_comment == "no credit"
    assert isinstance(world.request(ev.ReleaseJob(named(number))), Forbidden)
    world.request(ev.ReleaseJob(named(number)), OPERATOR)
    world.settle()
    assert world.job(number).restarts == 1  # the agent repeats its answer on the same run
    world.answer_prologs("run")
    world.begin_all()
    world.end(number)
    world.check_at_rest()


def test_bank_can_cancel_a_job() -> None:
    world = World(socket="agent")
    number = world.submit()
    world.settle()
    world.answer_prologs("cancel")
    assert (world.state(number), world.reason(number)) == ("CANCELLED", "Allocation_exhausted")


def test_repeated_verdict_sends_no_second_start() -> None:
    world = World(socket="agent")
    world.submit()
    world.settle()
    prolog = world.prologs[0]
    verdict = ev.VerdictGiven(prolog.number, prolog.run.run, "run")
    effects = [world.event(verdict), world.event(verdict)]
    sent = [[one for one in some if isinstance(one, Send)] for some in effects]
    assert [len(some) for some in sent] == [1, 0]


def test_late_verdict_on_an_earlier_run_changes_nothing() -> None:
    world = World(socket="agent")
    number = world.submit()
    world.settle()
    prolog = world.prologs[0]
    world.request(ev.CancelJob(named(number)))
    world.event(ev.VerdictGiven(prolog.number, prolog.run.run, "run"))
    assert world.state(number) == "CANCELLED"
    assert starts(world, number) == 0


def test_job_held_without_an_answer_is_released_when_an_agent_connects() -> None:
    world = World(socket="agent")
    number = world.submit()
    world.settle()
    prolog = world.prologs[0]
    world.event(ev.VerdictGiven(prolog.number, prolog.run.run, "hold", NO_ANSWER, "no agent"))
    assert (world.state(number), world.reason(number)) == ("PENDING", NO_ANSWER)
    world.event(ev.AgentConnected())
    world.settle()
    assert world.state(number) == "RUNNING CONFIGURING"


def test_agent_that_connects_releases_no_job_that_the_bank_refused() -> None:
    world = World(socket="agent")
    number = world.submit()
    world.settle()
    world.answer_prologs("hold")
    world.event(ev.AgentConnected())
    assert world.reason(number) == "Allocation_exhausted"


def test_agent_that_connects_gets_the_limits_of_running_jobs_once() -> None:
    world = World(socket="agent")
    number = world.run_one(limit=600)
    for _ in range(2):
        effects = world.event(ev.AgentConnected())
        sent = [one.message for one in effects if isinstance(one, Send)]
        assert [one.kind for one in sent if isinstance(one, AgentMessage)] == ["limit"]
    world.end(number)
    world.check_at_rest()


# --- ends


def test_limit_is_measured_on_the_monotonic_clock() -> None:
    world = World(over_time_limit=60)
    number = world.run_one(limit=600)
    world.now = Moment(world.now.wall + 50_000, world.now.mono)
    world.event(ev.TimerFired(ev.TimerKind.LIMIT, number))
    assert world.state(number) == "RUNNING"
    world.advance(659)
    assert world.state(number) == "RUNNING"
    world.advance(1)
    assert world.state(number) == "TIMEOUT COMPLETING"
    world.clear(number)
    run = world.job(number).run
    assert run is not None
    assert run.elapsed == 660


def test_node_that_reaches_the_time_limit_first_ends_the_job_by_its_limit() -> None:
    """The node of the batch script ends it a moment later, and its status counts."""
    world = World()
    number = world.run_one(nodes=2, cpus=4, limit=600)
    run = world.job(number).identity("lab")
    batch, side = world.nodes["n0"], world.nodes["n1"]
    side.runs[run] = "ending"
    world.event(side.seen(run, cause="time_limit", status=15))
    assert world.state(number) == "TIMEOUT COMPLETING"
    world.end_script(batch, run, 3)
    side.runs[run] = "cleared"
    world.event(side.seen(run, cause="time_limit", status=15))
    world.clear(number)
    assert world.state(number) == "TIMEOUT"
    kept = world.job(number).run
    assert kept is not None
    assert kept.status == 3


def test_unlimited_over_time_ends_no_run_and_still_warns() -> None:
    world = World(over_time_limit=None)
    number = world.run_one(limit=600, warning=WarningSignal(10, 60, to_script=True))
    run = world.job(number).identity("lab")
    assert world.nodes["n0"].starts[run].seconds is None
    world.advance(539)
    world.now = Moment(world.now.wall + 1, world.now.mono + 1)
    effects = world.event(ev.TimerFired(ev.TimerKind.WARNING, number))
    assert Send("n0", SignalJob(run=run, number=10, target="script")) in effects
    world.restart()
    world.advance(5_000)
    assert world.state(number) == "RUNNING"


def test_no_job_starts_while_another_is_completing_for_less_than_complete_wait() -> None:
    world = World(complete_wait=20)
    jobs = [world.run_one() for _ in range(2)]
    for number in jobs:
        world.end_script(world.nodes["n0"], world.job(number).identity("lab"), 0)
        waiting = world.submit()
        world.settle()
        assert world.state(waiting) == "PENDING"
        if number == jobs[0]:
            world.clear(number)
        else:
            world.restart()
            world.settle()
            world.advance(20)
        world.settle()
        assert world.state(waiting) == "RUNNING CONFIGURING"
        world.begin_all()


def test_warning_signal_comes_before_the_limit() -> None:
    world = World()
    number = world.run_one(limit=600, warning=WarningSignal(10, 60, to_script=True))
    run = world.job(number).run
    assert run is not None
    world.advance(530)
    due = ev.TimerFired(ev.TimerKind.WARNING, number)
    assert not any(isinstance(effect, Send) for effect in world.event(due))
    world.now = Moment(world.now.wall + 10, world.now.mono + 10)
    assert Send("n0", SignalJob(run=run.run, number=10, target="script")) in world.event(due)


def test_warning_signal_is_sent_once_though_the_limit_was_shortened() -> None:
    world = World()
    number = world.run_one(limit=600, warning=WarningSignal(10, 60, to_script=True))
    assert world.request(ev.UpdateJob(jobs=named(number), limit=590)) is None
    due, sent = ev.TimerFired(ev.TimerKind.WARNING, number), []
    world.advance(529)
    for seconds in (1, 10):  # the time of the new limit, and that of the first one
        world.now = Moment(world.now.wall + seconds, world.now.mono + seconds)
        sent += [effect for effect in world.event(due) if isinstance(effect, Send)]
    run = world.job(number).identity("lab")
    assert sent == [Send("n0", SignalJob(run=run, number=10, target="script"))]


@pytest.mark.parametrize("lead", [60, 3_600])
def test_warning_signal_longer_than_the_limit_comes_once_in_every_run(lead: int) -> None:
    world = World(nodes=1)
    node = world.nodes["n0"]
    number = world.submit(limit=60, warning=WarningSignal(10, lead, to_script=True))
    for runs in (1, 2):
        world.settle()
        world.advance(5)  # the script does not run yet, and cannot be warned
        world.begin_all()
        run = world.job(number).identity("lab")
        world.advance(WARNING_DELAY - 1)
        assert len(node.signals) == runs - 1
        world.advance(1)
        assert node.signals[runs - 1 :] == [SignalJob(run=run, number=10, target="script")]
        world.restart()
        world.advance(10)
        assert len(node.signals) == runs
        world.request(ev.RequeueJob(named(number)))
        world.clear(number)
        world.advance(200)


def test_warning_signal_that_became_due_while_the_controller_was_down_is_sent_late() -> None:
    world = World()
    for at in range(2):
        number = world.run_one(nodes=2, cpus=4, limit=600, warning=WarningSignal(10, 60))
        side = world.nodes["n1"]
        side.is_silent = True
        world.now = Moment(world.now.wall + 550, world.now.mono + 550)
        world.restart()
        world.advance(1)
        assert len(side.signals) == at  # a node that is not connected would not get it
        side.is_silent = False
        world.event(side.registration())
        world.advance(1)
        world.restart()
        world.advance(1)
        run = world.job(number).identity("lab")
        for node in world.nodes.values():
            assert node.signals[at:] == [SignalJob(run=run, number=10, target="steps")]
        world.end(number)


def test_warning_signal_comes_at_once_when_a_shorter_limit_has_made_it_due() -> None:
    world = World()
    number = world.run_one(limit=600, warning=WarningSignal(10, 60, to_script=True))
    world.advance(300)
    assert world.request(ev.UpdateJob(jobs=named(number), limit=310)) is None
    world.advance(0)
    assert len(world.nodes["n0"].signals) == 1


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        (0, "COMPLETED", "None"),
        (256, "FAILED", "NonZeroExitCode"),
        (9, "FAILED", "RaisedSignal"),
        (125, "OUT_OF_MEMORY", "OutOfMemory"),
        (7 * 256, "PENDING", "BeginTime"),
        (8 * 256, "PENDING SPECIAL_EXIT", "JobHeldUser"),
    ],
)
def test_exit_status_decides_the_end(status: int, state: str, reason: str) -> None:
    world = World(requeue_exit=frozenset({7}), requeue_exit_hold=frozenset({8}))
    number = world.run_one()
    world.end(number, status)
    assert (world.state(number), world.reason(number)) == (state, reason)
    record = next(iter(world.accounting.values()))
    assert record.run is not None
    assert record.run.status == status


def test_nodes_return_one_by_one_and_cores_are_free_after_the_epilog() -> None:
    world = World()
    number = world.run_one(nodes=2, cpus=4)
    other = world.submit(cpus=4)
    run = world.job(number).run
    assert run is not None
    world.end_script(world.nodes["n0"], run.run, 0)
    world.settle()
    assert (world.state(number), world.state(other)) == ("COMPLETED COMPLETING", "PENDING")
    world.clear_on(world.nodes["n1"], run.run)
    world.settle()
    assert world.state(other) == "RUNNING CONFIGURING"
    assert world.state(number) == "COMPLETED COMPLETING"
    world.clear_on(world.nodes["n0"], run.run)
    assert world.state(number) == "COMPLETED"


def test_failing_epilog_drains_the_node() -> None:
    world = World()
    number = world.run_one()
    run = world.job(number).run
    assert run is not None
    world.end_script(world.nodes["n0"], run.run, 0)
    world.nodes["n0"].runs[run.run] = "cleared"
    world.event(world.nodes["n0"].seen(run.run, epilog_status=256))
    assert world.state(number) == "COMPLETED"
    assert world.core.state.nodes["n0"].condition is NodeCondition.DRAIN


def test_processes_that_cannot_be_ended_drain_the_node_and_free_the_job() -> None:
    world = World()
    number = world.run_one()
    run = world.job(number).run
    assert run is not None
    world.request(ev.CancelJob(named(number)))
    world.event(world.nodes["n0"].seen(run.run, unkillable=(4711, 4712)))
    assert world.state(number) == "CANCELLED"
    assert world.core.state.nodes["n0"].reason == "Kill task failed: pids 4711,4712"
    world.request(ev.UpdateNode("n0", NodeEvent.RESUMED), OPERATOR)
    waiting = world.submit(cpus=4, nodes=2)
    world.settle()
    assert world.state(waiting) == "PENDING"  # until they are gone
    world.clear_on(world.nodes["n0"], run.run)
    world.settle()
    assert world.state(waiting) == "RUNNING CONFIGURING"


def test_node_gets_jobs_when_all_earlier_processes_are_gone() -> None:
    world = World(nodes=1)
    runs = [world.job(world.run_one()).run for _ in range(2)]
    world.request(ev.CancelJob(named(1)))
    world.request(ev.CancelJob(named(2)))
    for run in runs:
        assert run is not None
        world.event(world.nodes["n0"].seen(run.run, unkillable=(4711,)))
    world.request(ev.UpdateNode("n0", NodeEvent.RESUMED), OPERATOR)
    waiting = world.submit()
    for run, state in zip(runs, ("PENDING", "RUNNING CONFIGURING"), strict=True):
        assert run is not None
        world.clear_on(world.nodes["n0"], run.run)
        world.settle()
        assert world.state(waiting) == state


@pytest.mark.parametrize(
    ("failed", "no_kill", "may_requeue", "state"),
    [
        ("n0", False, False, "NODE_FAIL COMPLETING"),
        ("n0", False, True, "PENDING COMPLETING REQUEUED"),
        ("n0", True, False, "NODE_FAIL COMPLETING"),
        ("n1", True, False, "RUNNING"),
        ("n1", False, False, "NODE_FAIL COMPLETING"),
    ],
)
def test_failed_node_ends_requeues_or_leaves_its_job(
    failed: str, no_kill: bool, may_requeue: bool, state: str
) -> None:
    world = World()
    number = world.run_one(nodes=2, cpus=4, no_kill=no_kill, may_requeue=may_requeue)
    world.nodes[failed].is_silent = True
    world.event(ev.NodeSilent(failed))
    assert world.state(number) == state


def test_node_that_returns_with_an_ended_run_gets_no_job_until_it_is_gone() -> None:
    world = World(nodes=1, return_to_service=1)
    number = world.run_one(may_requeue=False)
    node = world.nodes["n0"]
    node.is_silent = True
    world.event(ev.NodeSilent("n0"))
    assert world.state(number) == "NODE_FAIL"
    waiting = world.submit(cpus=4)
    node.is_silent = False
    world.event(node.registration())
    world.settle()
    assert world.state(waiting) == "PENDING"
    (run,) = node.live
    assert node.runs[run] == "ending"
    world.clear_on(node, run)
    world.settle()
    assert world.state(waiting) == "RUNNING CONFIGURING"


def test_deadline_ends_a_pending_job_that_cannot_meet_it() -> None:
    world = World()
    number = world.submit(held=True, limit=600, deadline=world.now.wall + 1_000)
    world.advance(400)
    assert world.state(number) == "PENDING"
    world.advance(1)
    assert (world.state(number), world.reason(number)) == ("DEADLINE", "DeadLine")


def test_job_without_a_limit_may_run_until_its_deadline() -> None:
    world = World()
    number = world.submit(limit=None, deadline=world.now.wall + 1_000)
    world.settle()
    world.begin_all()
    world.advance(999)
    assert world.state(number) == "RUNNING"
    world.advance(1)
    assert world.state(number) == "DEADLINE COMPLETING"


def test_ended_job_is_forgotten_in_time_and_an_array_as_a_whole() -> None:
    world = World(min_job_age=300)
    number = world.run_one()
    world.end(number)
    array = world.submit(array="1-2%1")
    world.settle()
    world.begin_all()
    world.end(3)
    world.advance(299)
    assert number in world.core.state.jobs
    world.advance(1)
    assert number not in world.core.state.jobs
    world.advance(300)
    assert {array, 3} <= world.core.state.jobs.keys()
    world.request(ev.CancelJob(named(array)))
    world.advance(300)
    assert not world.core.state.jobs


# --- requeue and preemption


def test_requeued_job_keeps_its_id_and_has_a_new_run() -> None:
    world = World(socket="agent")
    number = world.run_one()
    world.advance(50)
    world.request(ev.RequeueJob(named(number)))
    assert world.reason(number) == "Cleaning"
    world.clear(number)
    world.advance(REQUEUE_SECONDS - 1)
    world.settle()
    assert world.reason(number) == "BeginTime"
    world.advance(1)
    world.settle()
    world.answer_prologs()
    world.begin_all()
    world.end(number)
    assert [(run.identity.restart, run.state) for run in world.accounting.values()] == [
        (0, "REQUEUED"),
        (1, "COMPLETED"),
    ]
    assert len(world.bank) == 2
    world.check_at_rest()


def test_messages_of_an_earlier_run_do_not_touch_the_present_one() -> None:
    world = World(nodes=1, socket="agent")
    number = world.run_one()
    earlier = world.job(number).run
    assert earlier is not None
    world.request(ev.RequeueJob(named(number)))
    world.clear(number)
    world.advance(REQUEUE_SECONDS)
    world.settle()
    world.event(ev.VerdictGiven(99, earlier.run, "hold", "Allocation_exhausted"))
    world.event(ev.RunChanged("n0", run_status(earlier.run, "running")))
    assert world.state(number) == "RUNNING CONFIGURING"
    world.answer_prologs()
    world.begin_all()
    for stage in ("ended", "cleared"):
        world.event(ev.RunChanged("n0", run_status(earlier.run, stage, 256)))
    assert world.state(number) == "RUNNING"
    world.end(number)
    world.check_at_rest()


def test_run_that_no_node_was_sent_is_requeued_without_a_wait() -> None:
    world = World(socket="agent")
    number = world.submit()
    world.settle()
    world.request(ev.RequeueJob(named(number)))
    world.settle()
    assert (world.state(number), world.job(number).restarts) == ("RUNNING CONFIGURING", 1)


def test_ended_job_that_is_requeued_keeps_its_exit_status() -> None:
    world = World()
    number = world.run_one()
    world.end(number, 3 * 256)
    world.request(ev.RequeueJob(named(number)))
    assert world.reason(number) == "BeginTime"
    assert world.job(number).exit_status == 3 * 256
    world.restart()
    world.advance(REQUEUE_SECONDS)
    world.settle()
    assert world.state(number) == "RUNNING CONFIGURING"


@pytest.mark.parametrize(("is_released", "reason"), [(False, "JobHeldUser"), (True, "BeginTime")])
def test_running_job_that_is_held_stays_so_when_it_is_requeued(
    is_released: bool, reason: str
) -> None:
    world = World()
    number = world.run_one()
    world.request(ev.HoldJob(named(number)))
    assert (world.state(number), world.reason(number)) == ("RUNNING", "JobHeldUser")
    if is_released:
        world.request(ev.ReleaseJob(named(number)))
        assert world.reason(number) == "None"
    world.request(ev.RequeueJob(named(number)))
    world.clear(number)
    assert (world.state(number), world.reason(number)) == ("PENDING", reason)


def preempting(mode: PreemptMode, grace: int) -> World:
    return World(
        PartitionRules(name="main", is_default=True, grace_seconds=grace),
        PartitionRules(name="urgent", tier=9),
        nodes=1,
        preemption=Preemption(by=PreemptBy.PARTITION, mode=mode),
    )


@pytest.mark.parametrize(
    ("mode", "may_requeue", "state"),
    [
        (PreemptMode.CANCEL, True, "PREEMPTED"),
        (PreemptMode.REQUEUE, True, "PENDING"),
        (PreemptMode.REQUEUE, False, "PREEMPTED"),
    ],
    ids=lambda value: str(getattr(value, "value", value)),
)
def test_preempted_job_is_cancelled_or_requeued_and_the_other_starts(
    mode: PreemptMode, may_requeue: bool, state: str
) -> None:
    world = preempting(mode, grace=0)
    victim = world.run_one(cpus=4, may_requeue=may_requeue)
    urgent = world.submit(cpus=4, partitions=("urgent",))
    world.settle()
    assert world.state(urgent) == "PENDING"
    world.clear(victim)
    world.settle()
    assert (world.state(victim), world.state(urgent)) == (state, "RUNNING CONFIGURING")


def test_cancelled_run_has_the_status_of_sigterm_until_that_of_its_script_is_known() -> None:
    world = World()
    number = world.run_one()
    world.request(ev.CancelJob(named(number)), ALICE)
    run = world.job(number).run
    assert run is not None
    assert (run.end, run.status) == ("CANCELLED", 15)
    assert world.accounting[str(run.run)].run == run
    world.event(ev.RunChanged("n0", run_status(run.run, "ended", 3 << 8)))
    after = world.job(number).run
    assert after is not None
    assert (after.end, after.status) == ("CANCELLED", 3 << 8)
    waiting = world.submit(held=True)
    world.request(ev.CancelJob(named(waiting)), ALICE)
    assert world.job(waiting).run is None


def test_preempted_job_has_its_grace_time() -> None:
    world = preempting(PreemptMode.CANCEL, grace=30)
    victim = world.run_one(cpus=4)
    world.submit(cpus=4, partitions=("urgent",))
    world.plan()
    world.advance(29)
    world.plan()
    assert world.state(victim) == "RUNNING"
    world.advance(1)
    assert world.state(victim) == "PREEMPTED COMPLETING"


# --- restart


def test_start_that_was_stored_and_not_sent_is_sent_once_after_a_restart() -> None:
    world = World()
    number = world.submit()
    world.event(world.computed_plan(), is_lost=True)
    assert starts(world, number) == 0
    world.restart()
    world.restart()
    assert starts(world, number) == 1
    world.begin_all()
    assert world.state(number) == "RUNNING"


def test_messages_that_the_agent_has_not_acknowledged_are_repeated() -> None:
    world = World(socket="agent")
    number = world.submit()
    world.settle()
    world.prologs.clear()  # the agent was killed
    world.restart()
    assert [message.run.run.job_id for message in world.prologs] == [number]
    world.answer_prologs()
    assert starts(world, number) == 1


def test_limit_goes_on_over_a_restart() -> None:
    world = World()
    number = world.run_one(limit=600)
    world.advance(500)
    world.restart()
    world.advance(100)
    assert world.state(number) == "TIMEOUT COMPLETING"


def test_run_that_ended_while_the_controller_was_away_is_reported_at_registration() -> None:
    world = World()
    number = world.run_one()
    run = world.job(number).run
    assert run is not None
    node = world.nodes["n0"]
    node.runs[run.run], node.status[run.run] = "cleared", 3 * 256
    world.restart()
    assert (world.state(number), world.reason(number)) == ("FAILED", "NonZeroExitCode")


@pytest.mark.parametrize(("failed", "drained"), [("prolog", True), ("launch", False)])
def test_start_that_failed_while_the_controller_was_away_is_no_end_of_a_script(
    failed: Literal["prolog", "launch"], drained: bool
) -> None:
    world = World(nodes=1)
    number = world.submit()
    world.settle()
    run = world.job(number).run
    assert run is not None
    resources = world.nodes["n0"].resources
    seen = run_status(run.run, "cleared", cause=failed)
    world.nodes["n0"].runs[run.run] = "cleared"
    world.event(ev.NodeRegistered(resources, "boot 1", (seen,)))
    assert (world.job(number).state.base, world.job(number).restarts) == ("PENDING", 1)
    assert (world.core.state.nodes["n0"].condition is NodeCondition.DRAIN) is drained


def test_start_message_has_what_the_node_needs() -> None:
    world = World(over_time_limit=60)
    number = world.submit(limit=600, cpus=2)
    world.settle()
    (start,) = world.nodes["n0"].starts.values()
    assert isinstance(start, StartRun)
    assert (start.request.number, start.submission.script, start.seconds) == (number, "digest", 660)


def test_memory_limits_no_start_where_it_is_not_counted() -> None:
    world = World(nodes=1, counts_memory=False)
    jobs = [world.run_one(memory=900), world.run_one(memory=2_000)]
    assert [world.job(job).request.wanted.memory_per_node for job in jobs] == [900, 2_000]


def test_every_job_gets_whole_nodes_with_linear_selection() -> None:
    world = World(nodes=1, cpus=4, whole_nodes=True)
    first = world.job(world.run_one())
    assert first.run is not None
    assert first.run.allocation.grants[0].cpus == 4
    second = world.submit()
    world.settle()
    assert world.reason(second) == "Resources"


def test_running_job_that_its_node_has_lost_is_requeued_and_not_started_twice() -> None:
    """A node that lost its records was not booted: whether the script lives is not known."""
    world = World(nodes=1)
    number = world.run_one(cpus=4)
    (node,) = world.nodes.values()
    before = world.job(number).run
    node.runs.clear()
    effects = world.event(node.registration())
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    assert [one for one in sent if isinstance(one, StartRun)] == []
    assert before is not None
    assert world.accounting[str(before.run)].state == "REQUEUED"
    assert (world.job(number).restarts, world.state(number)) == (1, "PENDING")


def test_time_counts_from_the_begin_of_the_script() -> None:
    world = World()
    number = world.submit(limit=60)
    world.settle()
    world.advance(5)
    world.begin_all()
    world.advance(59)
    assert world.state(number) == "RUNNING"
    world.advance(1)
    assert world.state(number) == "TIMEOUT COMPLETING"
    (record,) = world.accounting.values()
    assert record.run is not None
    assert record.run.elapsed == 60


@pytest.mark.parametrize("has_begun", [True, False])
def test_end_that_is_heard_of_late_counts_from_the_script(has_begun: bool) -> None:
    # Its node daemon or the controller was down, or the disk was full.
    world = World(nodes=1)
    number = world.submit(limit=600)
    world.settle()
    allocated = world.now
    world.advance(2)
    began = world.now
    if has_begun:
        world.begin_all()
    world.advance(90 if has_begun else 7)  # less than BatchStartTimeout
    end_at(world, ended=began.wall + 4.4, elapsed=4.4)
    (record,) = world.accounting.values()
    run = record.run
    assert run is not None
    assert run.allocated == allocated
    assert (run.started, run.ended) == (began, began.minus(-4))
    assert (run.elapsed, record.ended) == (4, began.wall + 4)
    # It can be seen in the queue for MinJobAge after that.
    assert world.job(number).ended == world.now


def test_begin_that_is_heard_of_late_counts_from_the_script() -> None:
    world = World(nodes=1)
    world.submit(limit=600)
    world.settle()
    began = world.now
    world.advance(8)
    world.begin_all()
    world.advance(61)
    end_at(world, ended=began.wall + 69.2, elapsed=69.2)
    (record,) = world.accounting.values()
    assert record.run is not None
    assert (record.run.started, record.run.elapsed) == (began, 69)


@pytest.mark.parametrize("set_by", [-3_600, 3_600])
def test_wall_clock_that_is_set_does_not_change_what_a_script_took(set_by: int) -> None:
    world = World(nodes=1)
    world.run_one(limit=600)
    world.advance(100)
    ended = world.now.wall
    world.now = Moment(world.now.wall + set_by, world.now.mono)
    end_at(world, ended=ended, elapsed=100.0)
    (record,) = world.accounting.values()
    assert record.run is not None
    assert record.run.elapsed == 100


@pytest.mark.parametrize("cause", ["time_limit", "step_daemon_killed"])
@pytest.mark.parametrize("has_begun", [False, True])
def test_end_on_another_node_does_not_move_a_begin_that_is_known(
    cause: EndCause, has_begun: bool
) -> None:
    """Its Prolog took less time. Of a begin that is not known it says the most."""
    world = World(nodes=2)
    world.submit(nodes=2, cpus=4, limit=600)
    world.settle()
    on_other_node = world.now
    world.advance(5)
    if has_begun:
        world.begin_all()
    begun = world.now if has_begun else on_other_node
    world.advance(3)  # less than BatchStartTimeout
    end_at(world, ended=on_other_node.wall + 8.0, elapsed=8.0, node="n1", cause=cause)
    (record,) = world.accounting.values()
    assert record.run is not None
    assert (record.run.started, record.run.elapsed) == (begun, 3 if has_begun else 8)


def end_at(
    world: World, *, ended: float, elapsed: float, node: str = "n0", cause: EndCause = "exit"
) -> None:
    """Let a node of the only run report its end there."""
    (run,) = world.nodes[node].runs
    world.nodes[node].runs[run] = "ending"
    seen = run_status(run, "ended", cause=cause)
    assert seen.end is not None
    end = structs.replace(seen.end, ended=ended, elapsed_seconds=elapsed)
    world.event(ev.RunChanged(node, structs.replace(seen, end=end)))


def test_script_whose_step_daemon_was_killed_ends_by_a_failure_of_the_system() -> None:
    world = World(nodes=1)
    number = world.run_one()
    (run,) = world.nodes["n0"].runs
    killed = run_status(run, "ended", None, cause="step_daemon_killed")
    world.event(ev.RunChanged("n0", killed))
    assert (world.state(number), world.reason(number)) == ("FAILED COMPLETING", "SystemFailure")
    after = world.job(number).run
    assert after is not None
    assert after.status == 9


@pytest.mark.parametrize("no_kill", [False, True])
@pytest.mark.parametrize(
    ("cause", "status", "reason"),
    [("step_daemon_killed", None, "SystemFailure"), ("exit", 9, "RaisedSignal")],
)
def test_kill_of_what_holds_a_run_beside_the_script_fails_the_job_unless_it_may_go_on(
    cause: EndCause, status: int | None, reason: str, no_kill: bool
) -> None:
    world = World(nodes=2)
    number = world.run_one(nodes=2, cpus=4, no_kill=no_kill)
    run = world.job(number).identity("lab")
    for stage in ("ended", "cleared"):
        world.nodes["n1"].runs[run] = "ending" if stage == "ended" else stage
        world.event(ev.RunChanged("n1", run_status(run, stage, status, cause=cause)))
    if no_kill:
        assert world.state(number) == "RUNNING"
    else:
        # It is charged: it is no failure of the node, and is not requeued.
        assert world.state(number) == "FAILED COMPLETING"
        assert world.reason(number) == reason


def test_run_that_was_lost_with_the_boot_of_its_node_is_forgotten_there() -> None:
    world = World(nodes=1)
    number = world.run_one(may_requeue=False)
    (run,) = world.nodes["n0"].runs
    lost = run_status(run, "cleared", None, cause="node_failure")
    world.event(ev.RunChanged("n0", lost))
    assert world.state(number) == "RUNNING"  # until the node registers
    world.nodes["n0"].runs[run] = "cleared"
    resources = world.nodes["n0"].resources
    effects = world.event(ev.NodeRegistered(resources, "boot 2", (lost,)))
    assert world.state(number) == "NODE_FAIL"
    assert Send("n0", ForgetRun(run=run)) in effects


def test_launch_without_a_script_may_fail_after_the_run_has_begun() -> None:
    world = World(nodes=1)
    number = world.run_one(may_requeue=False, script="")
    (run,) = world.nodes["n0"].runs
    world.event(ev.RunChanged("n0", run_status(run, "ended", None, cause="launch")))
    assert world.state(number) == "RUNNING"
    world.nodes["n0"].runs[run] = "cleared"
    world.event(ev.RunChanged("n0", run_status(run, "cleared", None, cause="launch")))
    assert (world.state(number), world.job(number).reason) == ("FAILED", "JobLaunchFailure")


def test_failed_launch_counts_when_its_epilog_has_ended() -> None:
    world = World(nodes=1)
    number = world.submit()
    world.settle()
    (run,) = world.nodes["n0"].runs
    world.event(ev.RunChanged("n0", run_status(run, "ended", None, cause="launch")))
    assert world.state(number) == "RUNNING CONFIGURING"
    world.nodes["n0"].runs[run] = "cleared"
    world.event(ev.RunChanged("n0", run_status(run, "cleared", None, cause="launch")))
    assert world.job(number).state.base == "PENDING"
