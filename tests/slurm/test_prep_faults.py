"""The plug-in with an agent that is slow, stopped or sends garbage, and a controller that is
killed: no report is lost, and no other job is delayed.
"""

from __future__ import annotations

import time

import pytest

from fairbank.agent.protocol import Verdict
from tests.slurm.agent import let_run, send_no_verdict
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.daemons import SLURMCTLD
from tests.slurm.lab.shell import UNTIL_RELEASED
from tests.slurm.prep_cluster import (
    PROLOG_TIMEOUT_SECONDS,
    PrepCluster,
    plugin_configured,
    run_keys,
    wait_for_end,
)
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


def test_slow_answer_delays_no_other_job(prep: PrepCluster, record_figure: RecordFigure) -> None:
    slow = prep.slurm.submit("alice", "--hold")
    prep.agent.is_delayed = lambda request: request.run.job_id == slow
    prep.slurm.root("scontrol", "release", str(slow))
    wait_until(lambda: bool(prep.agent.requests(slow)), "the slow one to ask")
    begun = time.monotonic()
    other = prep.slurm.submit("bob")
    sbatch_seconds = time.monotonic() - begun
    begun = time.monotonic()
    assert prep.slurm.states(slow) == ["CONFIGURING"]
    squeue_seconds = time.monotonic() - begun
    prep.slurm.wait_for(other, "COMPLETED")
    assert prep.slurm.states(slow) == ["CONFIGURING"]
    prep.agent.verdicts_released.set()
    prep.slurm.wait_for(slow, "COMPLETED")
    record_figure(
        f"while an answer is pending: sbatch {sbatch_seconds * 1000:.0f} ms, squeue"
        f" {squeue_seconds * 1000:.0f} ms"
    )
    assert max(sbatch_seconds, squeue_seconds) < PROLOG_TIMEOUT_SECONDS / 2, (
        "a command that waited for the answer would need the plug-in's whole patience"
    )


def test_job_is_held_until_an_agent_runs(prep: PrepCluster) -> None:
    prep.agent.stop()
    job = prep.slurm.submit("alice")
    prep.slurm.wait_for(job, "PENDING", "CONFIGURING")
    wait_until(
        lambda: prep.slurm.job(job).get("Reason") == "Fairbank_does_not_answer",
        "the job to be held",
        seconds=PROLOG_TIMEOUT_SECONDS + 20,
    )
    refused = prep.slurm.run("bob", "srun", "true")
    assert "srun: Fairbank: Fairbank's agent does not answer" in refused.err
    assert prep.slurm.job(job)["Restarts"] == "1"
    prep.agent.start()
    wait_until(lambda: prep.slurm.job(job)["Priority"] != "0", "the job to be released")
    # Without waiting for the two minutes of a requeued job.
    prep.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(prep, job, count=2)
    assert [(end.run.restart, end.begun) for end in prep.agent.ends(job)] == [(0, False), (1, True)]


def test_open_requests_are_repeated_to_a_restarted_agent(prep: PrepCluster) -> None:
    prep.agent.policy = send_no_verdict
    jobs = [prep.slurm.submit(user) for user in ("alice", "bob", "carol")]
    wait_until(lambda: len(prep.agent.requests()) == 3, "three questions")
    prep.agent.stop()
    prep.agent.policy = let_run
    prep.agent.start()
    for job in jobs:
        prep.slurm.wait_for(job, "COMPLETED")
        wait_for_end(prep, job)
        assert {request.number for request in prep.agent.requests(job)} == {
            prep.agent.requests(job)[0].number
        }
        assert len(run_keys([*prep.agent.requests(job), *prep.agent.ends(job)])) == 1


def test_ends_are_repeated_until_acknowledged(prep: PrepCluster) -> None:
    prep.agent.acknowledges = False
    job = prep.slurm.submit("alice")
    prep.slurm.wait_for(job, "COMPLETED")
    wait_for_end(prep, job)
    prep.agent.stop()
    later = prep.slurm.submit("bob", "--hold")
    prep.agent.acknowledges = True
    prep.agent.start()
    wait_for_end(prep, job, count=2)
    assert prep.agent.ends(job)[0] == prep.agent.ends(job)[1]
    prep.slurm.root("scancel", str(later))


def test_restarted_controller_repeats_open_requests(prep: PrepCluster) -> None:
    prep.agent.policy = send_no_verdict
    job = prep.slurm.submit("alice")
    wait_until(lambda: bool(prep.agent.requests(job)), "the question")
    prep.slurm.wait_until_saved(job)
    prep.slurm.kill(SLURMCTLD)
    prep.agent.policy = let_run
    prep.slurm.start(SLURMCTLD)
    prep.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(prep, job)
    assert len(prep.agent.requests(job)) >= 2
    assert len(run_keys([*prep.agent.requests(job), *prep.agent.ends(job)])) == 1


def test_restarted_controller_reports_running_and_ended_jobs(prep: PrepCluster) -> None:
    running = prep.slurm.submit("alice", "--time=10", script="sleep 600")
    prep.slurm.wait_for(running, "RUNNING")
    prep.agent.stop()
    prep.agent.received.clear()
    prep.slurm.root("scontrol", "update", f"jobid={running}", "timelimit=15")
    ended = prep.slurm.submit("bob", "--hold")
    prep.slurm.run("bob", "scancel", str(ended)).checked()
    prep.slurm.wait_until_saved(running)
    prep.slurm.kill(SLURMCTLD)
    prep.slurm.start(SLURMCTLD)
    prep.agent.start()
    wait_until(lambda: bool(prep.agent.limits(running)), "the running job to be reported")
    assert prep.agent.limits(running)[0].limit_seconds == 15 * 60
    assert prep.agent.ends(ended) == []  # a job without nodes is not reported
    prep.slurm.run("alice", "scancel", str(running)).checked()
    wait_for_end(prep, running)
    assert prep.agent.ends(running)[0].begun


@pytest.mark.parametrize("waits", [False, True], ids=["agent after it", "agent before it"])
def test_unreported_end_is_sent_after_a_restart(prep: PrepCluster, waits: bool) -> None:
    """Also to an agent that connects before slurmctld has loaded its jobs."""
    job = prep.slurm.submit("alice", script=UNTIL_RELEASED)
    prep.slurm.wait_for(job, "RUNNING")
    prep.agent.stop()
    prep.slurm.let_end("alice", job)
    prep.slurm.wait_for(job, "COMPLETED")
    prep.slurm.wait_until_saved(prep.slurm.submit("bob", "--hold"))  # saves all jobs
    prep.slurm.kill(SLURMCTLD)
    prep.agent.start() if waits else None
    prep.slurm.start(SLURMCTLD)
    prep.agent.start() if not waits else None
    wait_for_end(prep, job)
    assert run_keys([*prep.agent.ends(job)]) == run_keys([*prep.agent.requests(job)])


GARBAGE = {
    "too long": b"\xff\xff\xff\xff",
    "no length": b"\x00\x00\x00\x00",
    "no kind": b"\x00\x00\x00\x04abc\n",
    "not ended": b"\x00\x00\x00\x05hello",
    "NUL": b"\x00\x00\x00\x06hel\x00o\n",
    "another version": b"\x00\x00\x00\x10hello\nversion=2\n",
    "a huge number": b"\x00\x00\x00\x31ack\nnumber=9999999999999999999999999999999999999\n",
    "a web server": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_does_not_harm_slurmctld(prep: PrepCluster, garbage: bytes) -> None:
    pid = prep.slurm.pid(SLURMCTLD)
    prep.agent.stop()
    prep.agent.raw = garbage
    met = prep.agent.connections
    prep.agent.start()
    wait_until(lambda: prep.agent.connections >= met + 2, "the plug-in to hang up and come again")
    prep.agent.stop()
    prep.agent.raw = None
    prep.agent.start()
    prep.slurm.wait_for(prep.slurm.submit("alice"), "COMPLETED")
    assert prep.slurm.pid(SLURMCTLD) == pid


def test_unknown_verdicts_are_ignored(prep: PrepCluster) -> None:
    prep.agent.policy = lambda request: Verdict(number=request.number + 1000, action="cancel")
    job = prep.slurm.submit("alice")
    wait_until(lambda: bool(prep.agent.requests(job)), "the question")
    prep.agent.policy = let_run
    prep.agent.stop()
    prep.agent.start()
    prep.slurm.wait_for(job, "COMPLETED")


def test_open_outage_policy_lets_jobs_run(prep: PrepCluster) -> None:
    with plugin_configured(prep.slurm, outage_policy="open", patience="1"):
        prep.agent.policy = send_no_verdict
        job = prep.slurm.submit("alice", script=UNTIL_RELEASED)
        prep.slurm.wait_for(job, "RUNNING")
        prep.agent.stop()
        prep.agent.start()
        wait_until(lambda: bool(prep.agent.limits(job)), "the agent to hear of it after all")
        prep.slurm.let_end("alice", job)
        wait_for_end(prep, job)
        assert prep.agent.ends(job)[0].begun
        assert len(run_keys([*prep.agent.limits(job), *prep.agent.ends(job)])) == 1


@pytest.mark.parametrize(
    "changes",
    [{"colour": "red"}, {"patience": "soon"}, {"outage_policy": "ajar"}, {"socket": "prep.sock"}],
    ids=str,
)
def test_unknown_parameter_stops_slurmctld_at_its_start(
    prep: PrepCluster, changes: dict[str, str]
) -> None:
    (name, value), *_ = changes.items()
    with (
        pytest.raises(
            RuntimeError, match=f"PrEpParameters: fairbank_{name}={value} is not understood"
        ),
        plugin_configured(prep.slurm, **changes),
    ):
        raise AssertionError("slurmctld has started")
