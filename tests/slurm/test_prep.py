"""Real jobs, the plug-in and a simulated agent: prolog requests, verdicts and reports of ends."""

from __future__ import annotations

import os
import signal
import time
from fractions import Fraction
from functools import partial

import pytest

from tests.slurm.agent import Policy, cancelling, holding, let_run, say_nothing
from tests.slurm.conftest import Tell
from tests.slurm.lab.answers import tres
from tests.slurm.lab.configuration import NODE_TIMEOUT
from tests.slurm.prep_cluster import Desk, runs, start_soon, wait_for_end
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SHORT_OF_CREDIT = holding("Allocation_exhausted", "wg_astro lacks 3 SU of 30; ask your PI")


def has_heard_ends(desk: Desk, count: int) -> bool:
    return len(desk.agent.ends()) >= count


# ---------------------------------------------------------------- what is said


def test_job_starts_after_the_verdict_and_its_end_is_reported(desk: Desk) -> None:
    job = desk.slurm.submit(
        "carol",
        "--partition=gpu",
        "--cpus-per-task=16",
        "--gres=gpu:2",
        "--time=7",
        "--job-name=two words",
        script="sleep 1; exit 3",
    )
    desk.slurm.wait_for(job, "FAILED")
    wait_for_end(desk, job)
    (request,), (end,) = desk.agent.asked(job), desk.agent.ends(job)
    (row,) = desk.slurm.wait_for_sacct(job, "FAILED")
    assert request.run == end.run
    assert (request.run.cluster, request.run.restart) == ("lab", 0)
    assert (
        request.account,
        request.partition,
        request.qos,
        request.limit_seconds,
        request.batch,
    ) == ("wg_bio", "gpu", "normal", 420, True)
    assert tres(request.tres) == {
        "cpu": "16",
        "mem": "16000M",
        "node": "1",
        "billing": "24",
        "gres/gpu": "2",
    }
    assert request.billing == 24
    assert request.name == end.name == "two words"
    assert (end.state, end.exit_status, end.begun) == ("FAILED", 3 << 8, True)
    assert end.elapsed_seconds == int(row["ElapsedRaw"]) == end.end - end.start


def test_billing_is_exact(desk: Desk) -> None:
    job = desk.slurm.submit("alice", "--partition=gpu-t4", "--cpus-per-task=1", "--mem=1G")
    desk.slurm.wait_for(job, "COMPLETED")
    assert desk.agent.asked(job)[0].billing == Fraction(1, 16)


def test_each_array_task_sends_a_prolog_request(desk: Desk) -> None:
    job = desk.slurm.submit("dave", "--array=1-5%2")
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_until(lambda: len(desk.agent.ends()) == 5, "five ends")
    assert {request.array for request in desk.agent.asked()} == {
        (job, task) for task in range(1, 6)
    }
    assert runs([*desk.agent.asked()]) == runs([*desk.agent.ends()])
    assert len(runs([*desk.agent.asked()])) == 5


def test_each_heterogeneous_component_sends_a_prolog_request(desk: Desk) -> None:
    job = desk.slurm.submit("alice", "--ntasks=1", ":", "--ntasks=2", "--partition=gpu")
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_until(lambda: len(desk.agent.ends()) == 2, "two ends")
    assert {(request.het, request.partition) for request in desk.agent.asked()} == {
        ((job, 0), "cpu"),
        ((job, 1), "gpu"),
    }


def test_changed_time_limit_is_reported(desk: Desk) -> None:
    job = desk.slurm.submit("alice", "--time=10", script="sleep 600")
    desk.slurm.wait_for(job, "RUNNING")
    desk.slurm.root("scontrol", "update", f"jobid={job}", "timelimit=25")
    wait_until(lambda: bool(desk.agent.limits(job)), "the new limit to be told")
    (changed,) = desk.agent.limits(job)
    assert (changed.run, changed.limit_seconds) == (desk.agent.asked(job)[0].run, 25 * 60)


def has_run(desk: Desk, job: int) -> bool:
    """Return True if the job has run for at least a second."""
    return desk.slurm.job(job).get("RunTime", "00:00:00") != "00:00:00"


def test_suspended_time_is_excluded_from_elapsed(desk: Desk) -> None:
    jobs = [desk.slurm.submit("alice", script="sleep 600") for _ in range(2)]
    for job in jobs:
        # slurmdbd takes a suspension from the second of the start on for time that it ran
        wait_until(partial(has_run, desk, job), "a second to pass")
        desk.slurm.root("scontrol", "suspend", str(job))
    time.sleep(3)  # the thing measured, not a wait for something
    desk.slurm.root("scontrol", "resume", str(jobs[0]))
    for job in jobs:
        desk.slurm.run("alice", "scancel", str(job)).done()
        wait_for_end(desk, job)
        (row,) = desk.slurm.wait_for_sacct(job, "CANCELLED")
        (end,) = desk.agent.ends(job)
        assert end.suspended_seconds >= 3
        assert abs(end.elapsed_seconds - int(row["ElapsedRaw"])) <= 1


# ---------------------------------------------------------------- no


def test_refused_job_is_held_with_the_reason(desk: Desk) -> None:
    desk.agent.policy = SHORT_OF_CREDIT
    jobs = [
        desk.slurm.submit("alice", option, "--comment=mine")
        for option in ("--requeue", "--no-requeue")
    ]
    for job in jobs:
        wait_for_end(desk, job)
        desk.slurm.wait_for(job, "PENDING")
        squeue = desk.slurm.root("squeue", "--noheader", f"--jobs={job}", "--format=%t %R").strip()
        assert squeue == "PD (Allocation_exhausted)"
        shown = desk.slurm.root("scontrol", "show", "job", str(job))
        assert "AdminComment=Fairbank: wg_astro lacks 3 SU of 30; ask your PI" in shown
        assert " Priority=0 " in shown.replace("\n", " ")
        assert "denied" in desk.slurm.run("alice", "scontrol", "release", str(job)).err
        (end,) = desk.agent.ends(job)
        assert (end.state, end.begun) == ("REQUEUED", False)
    assert [len(desk.agent.asked(job)) for job in jobs] == [1, 1]


def test_released_job_asks_again_as_another_run(desk: Desk) -> None:
    desk.agent.policy = SHORT_OF_CREDIT
    job = desk.slurm.submit("alice")
    wait_for_end(desk, job)
    desk.agent.policy = let_run
    desk.slurm.wait_for(job, "PENDING")
    desk.slurm.root("scontrol", "release", str(job))
    start_soon(desk, job)
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(desk, job, count=2)
    assert [request.run.restart for request in desk.agent.asked(job)] == [0, 1]
    assert [(end.run.restart, end.begun) for end in desk.agent.ends(job)] == [(0, False), (1, True)]
    assert "AdminComment=Fairbank" not in desk.slurm.root("scontrol", "show", "job", str(job))


def test_many_refused_jobs_all_show_the_reason(desk: Desk) -> None:
    """A scheduler pass during the requeueing takes a job whose prolog is not over for one that is
    being cleaned up.
    """
    desk.agent.policy = SHORT_OF_CREDIT
    job = desk.slurm.submit("alice", "--array=1-200")
    wait_until(lambda: len(desk.agent.ends()) == 200, "200 ends", seconds=120)
    desk.slurm.wait_for(job, "PENDING")
    reasons = desk.slurm.root(
        "squeue", "--noheader", "--array", f"--jobs={job}", "--format=%r"
    ).split()
    assert reasons == ["Allocation_exhausted"] * 200


def test_refused_heterogeneous_job_is_held_entirely(desk: Desk) -> None:
    desk.agent.policy = SHORT_OF_CREDIT
    job = desk.slurm.submit("alice", "--ntasks=1", ":", "--ntasks=2", "--partition=gpu")
    wait_until(lambda: len(desk.agent.ends()) == 2, "two ends")
    desk.slurm.wait_for(job, "PENDING")
    reasons = desk.slurm.root("squeue", "--noheader", f"--jobs={job}", "--format=%r").split()
    assert reasons == ["Allocation_exhausted"] * 2


@pytest.mark.parametrize(
    "policy",
    [cancelling("no credit left; ask your PI"), holding("Short", "no credit left; ask your PI")],
)
def test_srun_and_salloc_show_the_reason(desk: Desk, policy: Policy) -> None:
    desk.agent.policy = policy
    for command in ("srun", "salloc"):
        result = desk.slurm.run("alice", command, "true")
        assert result.code == 1
        assert f"{command}: Fairbank: no credit left; ask your PI\n" in result.err
    wait_until(lambda: len(desk.agent.ends()) == 2, "two ends")
    assert {(end.state, end.begun) for end in desk.agent.ends()} == {("CANCELLED", False)}


def test_cancelled_job_has_an_admin_comment(desk: Desk) -> None:
    desk.agent.policy = cancelling("no credit left")
    job = desk.slurm.submit("alice")
    desk.slurm.wait_for(job, "CANCELLED")
    assert "AdminComment=Fairbank: no credit left" in desk.slurm.root(
        "scontrol", "show", "job", str(job)
    )


# ---------------------------------------------------------------- ends of other kinds


def test_job_cancelled_before_the_verdict_ends_at_once(desk: Desk) -> None:
    desk.agent.policy = say_nothing
    job = desk.slurm.submit("alice")
    wait_until(lambda: bool(desk.agent.asked(job)), "the question")
    desk.slurm.run("alice", "scancel", str(job)).done()
    desk.slurm.wait_for(job, "CANCELLED")
    wait_for_end(desk, job)
    (end,) = desk.agent.ends(job)
    assert (end.run, end.begun) == (desk.agent.asked(job)[0].run, False)


def test_a_requeued_job_is_another_run(desk: Desk) -> None:
    job = desk.slurm.submit("alice", "--requeue", script="[ $SLURM_RESTART_COUNT ] || sleep 600")
    desk.slurm.wait_for(job, "RUNNING")
    desk.slurm.root("scontrol", "requeue", str(job))
    desk.slurm.wait_for(job, "PENDING")
    wait_for_end(desk, job)
    start_soon(desk, job)
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(desk, job, count=2)
    first, second = desk.agent.asked(job)
    assert [end.run for end in desk.agent.ends(job)] == [first.run, second.run]
    assert (first.run.restart, second.run.restart) == (0, 1)
    assert second.run.submitted > first.run.submitted
    assert [end.state for end in desk.agent.ends(job)] == ["REQUEUED", "COMPLETED"]


def test_job_requeued_before_the_verdict_starts_again(desk: Desk) -> None:
    desk.agent.policy = say_nothing
    job = desk.slurm.submit("alice", "--requeue")
    wait_until(lambda: bool(desk.agent.asked(job)), "the question")
    desk.slurm.root("scontrol", "requeue", str(job))
    wait_for_end(desk, job)
    desk.agent.policy = let_run
    desk.slurm.wait_for(job, "PENDING")
    start_soon(desk, job)
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)


def test_node_failure_is_reported(desk: Desk) -> None:
    lost = desk.slurm.submit("alice", "--no-requeue", "--nodelist=c03", script="sleep 600")
    moved = desk.slurm.submit("alice", "--requeue", "--nodelist=c03", script="sleep 600")
    for job in (lost, moved):
        desk.slurm.wait_for(job, "RUNNING")
    desk.slurm.kill("c03")
    for job in (lost, moved):
        wait_for_end(desk, job, seconds=NODE_TIMEOUT * 4 + 30)
        (end,) = desk.agent.ends(job)
        assert (end.run, end.state, end.begun) == (desk.agent.asked(job)[0].run, "NODE_FAIL", True)
    desk.slurm.start("c03")
    desk.slurm.wait_for_nodes("idle", nodes=["c03"], seconds=60)


def test_node_that_does_not_start_a_job_has_failed(desk: Desk) -> None:
    """Slurm reports NODE_FAIL to accounting, requeues the job, and reports its next run with the
    same submit time.
    """
    frozen = desk.slurm.pid("c03")
    assert frozen is not None
    os.kill(frozen, signal.SIGSTOP)
    try:
        job = desk.slurm.submit("alice", "--requeue", "--nodelist=c03")
        wait_for_end(desk, job, seconds=60)
    finally:
        os.kill(frozen, signal.SIGCONT)
    (end,) = desk.agent.ends(job)
    assert (end.run, end.state) == (desk.agent.asked(job)[0].run, "NODE_FAIL")
    desk.slurm.wait_for(job, "PENDING", seconds=60)
    start_soon(desk, job)
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(desk, job, count=2)
    assert [end.state for end in desk.agent.ends(job)] == ["NODE_FAIL", "COMPLETED"]
    desk.slurm.wait_for_nodes("idle", nodes=["c03"], seconds=60)


# ---------------------------------------------------------------- many


def test_many_short_jobs_begin_and_end_once(desk: Desk, tell: Tell) -> None:
    begun = time.monotonic()
    job = desk.slurm.submit("alice", "--array=1-300")
    for enough in (30, 90, 150):  # with an agent that dies now and then
        wait_until(partial(has_heard_ends, desk, enough), "some to end", seconds=60)
        desk.agent.stop()
        desk.agent.start()
    desk.slurm.wait_for(job, "COMPLETED", seconds=120)
    wait_until(lambda: len(runs([*desk.agent.ends()])) == 300, "all ends", seconds=60)
    tell(f"300 tasks with an agent that is killed three times: {time.monotonic() - begun:.1f} s")
    assert runs([*desk.agent.asked()]) == runs([*desk.agent.ends()])
    assert len({end.array for end in desk.agent.ends()}) == 300
    assert all(end.begun for end in desk.agent.ends())
