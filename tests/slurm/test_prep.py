"""Real jobs, the plug-in and a simulated agent: prolog requests, verdicts and reports of ends."""

from __future__ import annotations

import os
import signal
import time
from fractions import Fraction
from functools import partial

import pytest

from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.reconcile.resized import join_resized
from tests.slurm.agent import Policy, cancel_policy, hold_policy, let_run, send_no_verdict
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.configuration import NODE_TIMEOUT
from tests.slurm.lab.output_parsers import tres
from tests.slurm.prep_cluster import PrepCluster, run_keys, start_requeued, wait_for_end
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SHORT_OF_CREDIT = hold_policy("Allocation_exhausted", "wg_astro lacks 3 SU of 30; ask your PI")


def has_received_ends(prep: PrepCluster, count: int) -> bool:
    return len(prep.agent.ends()) >= count


# ---------------------------------------------------------------- messages


def test_job_starts_after_the_verdict_and_its_end_is_reported(prep: PrepCluster) -> None:
    job = prep.slurm.submit(
        "carol",
        "--partition=gpu",
        "--cpus-per-task=16",
        "--gres=gpu:2",
        "--time=7",
        "--job-name=two words",
        script="sleep 1; exit 3",
    )
    prep.slurm.wait_for(job, "FAILED")
    wait_for_end(prep, job)
    (request,), (end,) = prep.agent.requests(job), prep.agent.ends(job)
    (row,) = prep.slurm.wait_for_sacct(job, "FAILED")
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


def test_billing_is_exact(prep: PrepCluster) -> None:
    job = prep.slurm.submit("alice", "--partition=gpu-t4", "--cpus-per-task=1", "--mem=1G")
    prep.slurm.wait_for(job, "COMPLETED")
    assert prep.agent.requests(job)[0].billing == Fraction(1, 16)


def test_each_array_task_sends_a_prolog_request(prep: PrepCluster) -> None:
    job = prep.slurm.submit("dave", "--array=1-5%2")
    prep.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_until(lambda: len(prep.agent.ends()) == 5, "five ends")
    assert {request.array for request in prep.agent.requests()} == {
        (job, task) for task in range(1, 6)
    }
    assert run_keys([*prep.agent.requests()]) == run_keys([*prep.agent.ends()])
    assert len(run_keys([*prep.agent.requests()])) == 5


def test_each_heterogeneous_component_sends_a_prolog_request(prep: PrepCluster) -> None:
    job = prep.slurm.submit("alice", "--ntasks=1", ":", "--ntasks=2", "--partition=gpu")
    prep.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_until(lambda: len(prep.agent.ends()) == 2, "two ends")
    assert {(request.het, request.partition) for request in prep.agent.requests()} == {
        ((job, 0), "cpu"),
        ((job, 1), "gpu"),
    }


def test_changed_time_limit_is_reported(prep: PrepCluster) -> None:
    job = prep.slurm.submit("alice", "--time=10", script="sleep 600")
    prep.slurm.wait_for(job, "RUNNING")
    prep.slurm.root("scontrol", "update", f"jobid={job}", "timelimit=25")
    wait_until(lambda: bool(prep.agent.limits(job)), "the new limit to be reported")
    (changed,) = prep.agent.limits(job)
    assert (changed.run, changed.limit_seconds) == (prep.agent.requests(job)[0].run, 25 * 60)


def test_resized_job_is_reported_with_the_time_of_the_change(prep: PrepCluster) -> None:
    """Accounting has two records; the second one is submitted at the time of the change."""
    job = prep.slurm.submit("alice", "--nodes=2", "--ntasks=2", "--time=10", script="sleep 600")
    prep.slurm.wait_for(job, "RUNNING")
    wait_until(partial(has_run, prep, job), "a second to pass")
    prep.slurm.root("scontrol", "update", f"jobid={job}", "numnodes=1")
    wait_until(lambda: bool(prep.agent.limits(job)), "the new size to be reported")
    prep.slurm.run("alice", "scancel", str(job)).checked()
    wait_for_end(prep, job)
    (request,), (change,), (end,) = (
        prep.agent.requests(job),
        prep.agent.limits(job),
        prep.agent.ends(job),
    )
    assert request.run == change.run == end.run
    assert request.resized is None
    assert (change.resized or 0) > request.start
    assert change.billing < request.billing
    assert (end.resized, end.billing) == (change.resized, change.billing)
    accounting = SlurmCommands(prep.slurm.place.environment)
    wait_until(
        lambda: [row.has_ended for row in accounting.jobs_by_id([job]).rows] == [False, True],
        "two records",
    )
    before, after = accounting.jobs_by_id([job]).rows
    assert (before.state, before.end) == ("RESIZING", change.resized)
    assert (after.submitted, after.start) == (change.resized, before.start)
    (whole,) = join_resized([before, after])
    assert (whole.submitted, whole.elapsed) == (end.run.submitted, end.elapsed_seconds)


def has_run(prep: PrepCluster, job: int) -> bool:
    """Return True if the job has run for at least a second."""
    return prep.slurm.job(job).get("RunTime", "00:00:00") != "00:00:00"


def test_suspended_time_is_excluded_from_elapsed(prep: PrepCluster) -> None:
    """A job that ends while it is suspended ended when it was suspended."""
    accounting = SlurmCommands(prep.slurm.place.environment)
    jobs = [prep.slurm.submit("alice", script="sleep 600") for _ in range(2)]
    for job in jobs:
        wait_until(partial(has_run, prep, job), "a second to pass")
        prep.slurm.root("scontrol", "suspend", str(job))
    time.sleep(3)  # the suspension to be measured
    prep.slurm.root("scontrol", "resume", str(jobs[0]))
    for job in jobs:
        prep.slurm.run("alice", "scancel", str(job)).checked()
        wait_for_end(prep, job)
        prep.slurm.wait_for_sacct(job, "CANCELLED")
        (recorded,) = accounting.jobs_by_id([job]).rows
        (end,) = prep.agent.ends(job)
        assert end.suspended_seconds >= 3
        assert (end.end, end.elapsed_seconds) == (recorded.end, recorded.elapsed)


# ---------------------------------------------------------------- refusals


def test_refused_job_is_held_with_the_reason(prep: PrepCluster) -> None:
    prep.agent.policy = SHORT_OF_CREDIT
    jobs = [
        prep.slurm.submit("alice", option, "--comment=mine")
        for option in ("--requeue", "--no-requeue")
    ]
    for job in jobs:
        wait_for_end(prep, job)
        prep.slurm.wait_for(job, "PENDING")
        squeue = prep.slurm.root("squeue", "--noheader", f"--jobs={job}", "--format=%t %R").strip()
        assert squeue == "PD (Allocation_exhausted)"
        shown = prep.slurm.root("scontrol", "show", "job", str(job))
        assert "AdminComment=Fairbank: wg_astro lacks 3 SU of 30; ask your PI" in shown
        assert " Priority=0 " in shown.replace("\n", " ")
        assert "denied" in prep.slurm.run("alice", "scontrol", "release", str(job)).err
        (end,) = prep.agent.ends(job)
        assert (end.state, end.begun) == ("REQUEUED", False)
    assert [len(prep.agent.requests(job)) for job in jobs] == [1, 1]


def test_released_job_asks_again_as_another_run(prep: PrepCluster) -> None:
    prep.agent.policy = SHORT_OF_CREDIT
    job = prep.slurm.submit("alice")
    wait_for_end(prep, job)
    prep.agent.policy = let_run
    prep.slurm.wait_for(job, "PENDING")
    prep.slurm.root("scontrol", "release", str(job))
    start_requeued(prep, job)
    prep.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(prep, job, count=2)
    assert [request.run.restart for request in prep.agent.requests(job)] == [0, 1]
    assert [(end.run.restart, end.begun) for end in prep.agent.ends(job)] == [(0, False), (1, True)]
    assert "AdminComment=Fairbank" not in prep.slurm.root("scontrol", "show", "job", str(job))


def test_many_refused_jobs_all_show_the_reason(prep: PrepCluster) -> None:
    """A scheduler pass during the requeueing takes a job whose prolog is not over for one that is
    being cleaned up.
    """
    prep.agent.policy = SHORT_OF_CREDIT
    job = prep.slurm.submit("alice", "--array=1-200")
    wait_until(lambda: len(prep.agent.ends()) == 200, "200 ends", seconds=120)
    prep.slurm.wait_for(job, "PENDING")
    reasons = prep.slurm.root(
        "squeue", "--noheader", "--array", f"--jobs={job}", "--format=%r"
    ).split()
    assert reasons == ["Allocation_exhausted"] * 200


def test_refused_heterogeneous_job_is_held_entirely(prep: PrepCluster) -> None:
    prep.agent.policy = SHORT_OF_CREDIT
    job = prep.slurm.submit("alice", "--ntasks=1", ":", "--ntasks=2", "--partition=gpu")
    wait_until(lambda: len(prep.agent.ends()) == 2, "two ends")
    prep.slurm.wait_for(job, "PENDING")
    reasons = prep.slurm.root("squeue", "--noheader", f"--jobs={job}", "--format=%r").split()
    assert reasons == ["Allocation_exhausted"] * 2


@pytest.mark.parametrize(
    "policy",
    [
        cancel_policy("no credit left; ask your PI"),
        hold_policy("Short", "no credit left; ask your PI"),
    ],
)
def test_srun_and_salloc_show_the_reason(prep: PrepCluster, policy: Policy) -> None:
    """slurmctld sends the reason and the end of the job in two threads: on a slow machine the end
    may arrive first, so each command has several attempts.
    """
    prep.agent.policy = policy

    def shows_the_reason(command: str) -> bool:
        result = prep.slurm.run("alice", command, "true")
        assert result.code == 1
        return f"{command}: Fairbank: no credit left; ask your PI\n" in result.err

    for command in ("srun", "salloc"):
        wait_until(partial(shows_the_reason, command), f"{command} to show the reason")
    wait_until(lambda: len(prep.agent.ends()) == len(prep.agent.requests()), "all ends")
    assert {(end.state, end.begun) for end in prep.agent.ends()} == {("CANCELLED", False)}


def test_cancelled_job_has_an_admin_comment(prep: PrepCluster) -> None:
    prep.agent.policy = cancel_policy("no credit left")
    job = prep.slurm.submit("alice")
    prep.slurm.wait_for(job, "CANCELLED")
    assert "AdminComment=Fairbank: no credit left" in prep.slurm.root(
        "scontrol", "show", "job", str(job)
    )


# ---------------------------------------------------------------- other ends


def test_job_cancelled_before_the_verdict_ends_at_once(prep: PrepCluster) -> None:
    prep.agent.policy = send_no_verdict
    job = prep.slurm.submit("alice")
    wait_until(lambda: bool(prep.agent.requests(job)), "the question")
    prep.slurm.run("alice", "scancel", str(job)).checked()
    prep.slurm.wait_for(job, "CANCELLED")
    wait_for_end(prep, job)
    (end,) = prep.agent.ends(job)
    assert (end.run, end.begun) == (prep.agent.requests(job)[0].run, False)


def test_requeued_job_is_another_run(prep: PrepCluster) -> None:
    job = prep.slurm.submit("alice", "--requeue", script="[ $SLURM_RESTART_COUNT ] || sleep 600")
    prep.slurm.wait_for(job, "RUNNING")
    prep.slurm.root("scontrol", "requeue", str(job))
    prep.slurm.wait_for(job, "PENDING")
    wait_for_end(prep, job)
    start_requeued(prep, job)
    prep.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(prep, job, count=2)
    first, second = prep.agent.requests(job)
    assert [end.run for end in prep.agent.ends(job)] == [first.run, second.run]
    assert (first.run.restart, second.run.restart) == (0, 1)
    assert second.run.submitted > first.run.submitted
    assert [end.state for end in prep.agent.ends(job)] == ["REQUEUED", "COMPLETED"]


def test_job_requeued_before_the_verdict_starts_again(prep: PrepCluster) -> None:
    prep.agent.policy = send_no_verdict
    job = prep.slurm.submit("alice", "--requeue")
    wait_until(lambda: bool(prep.agent.requests(job)), "the question")
    prep.slurm.root("scontrol", "requeue", str(job))
    wait_for_end(prep, job)
    prep.agent.policy = let_run
    prep.slurm.wait_for(job, "PENDING")
    start_requeued(prep, job)
    prep.slurm.wait_for(job, "COMPLETED", seconds=60)


def test_node_failure_is_reported(prep: PrepCluster) -> None:
    lost = prep.slurm.submit("alice", "--no-requeue", "--nodelist=c03", script="sleep 600")
    moved = prep.slurm.submit("alice", "--requeue", "--nodelist=c03", script="sleep 600")
    for job in (lost, moved):
        prep.slurm.wait_for(job, "RUNNING")
    prep.slurm.kill("c03")
    for job in (lost, moved):
        wait_for_end(prep, job, seconds=NODE_TIMEOUT * 4 + 30)
        (end,) = prep.agent.ends(job)
        assert (end.run, end.state, end.begun) == (
            prep.agent.requests(job)[0].run,
            "NODE_FAIL",
            True,
        )
    prep.slurm.start("c03")
    prep.slurm.wait_for_nodes("idle", nodes=["c03"], seconds=60)


def test_node_that_does_not_start_a_job_has_failed(prep: PrepCluster) -> None:
    """Slurm reports NODE_FAIL to accounting, requeues the job, and reports its next run with the
    same submit time.
    """
    frozen = prep.slurm.pid("c03")
    assert frozen is not None
    os.kill(frozen, signal.SIGSTOP)
    try:
        job = prep.slurm.submit("alice", "--requeue", "--nodelist=c03")
        wait_for_end(prep, job, seconds=60)
    finally:
        os.kill(frozen, signal.SIGCONT)
    (end,) = prep.agent.ends(job)
    assert (end.run, end.state) == (prep.agent.requests(job)[0].run, "NODE_FAIL")
    prep.slurm.wait_for(job, "PENDING", seconds=60)
    start_requeued(prep, job)
    prep.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(prep, job, count=2)
    assert [end.state for end in prep.agent.ends(job)] == ["NODE_FAIL", "COMPLETED"]
    prep.slurm.wait_for_nodes("idle", nodes=["c03"], seconds=60)


# ---------------------------------------------------------------- many jobs


def test_many_short_jobs_begin_and_end_once(prep: PrepCluster, record_figure: RecordFigure) -> None:
    begun = time.monotonic()
    job = prep.slurm.submit("alice", "--array=1-300")
    for enough in (30, 90, 150):  # restart the agent several times
        wait_until(partial(has_received_ends, prep, enough), "some to end", seconds=60)
        prep.agent.stop()
        prep.agent.start()
    prep.slurm.wait_for(job, "COMPLETED", seconds=120)
    wait_until(lambda: len(run_keys([*prep.agent.ends()])) == 300, "all ends", seconds=60)
    record_figure(
        f"300 tasks with an agent that is killed three times: {time.monotonic() - begun:.1f} s"
    )
    assert run_keys([*prep.agent.requests()]) == run_keys([*prep.agent.ends()])
    assert len({end.array for end in prep.agent.ends()}) == 300
    assert all(end.begun for end in prep.agent.ends())
