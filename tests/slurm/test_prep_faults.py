"""The plug-in with an agent that is slow, stopped or sends garbage, and a controller that is
killed: no report is lost, and no other job is delayed.
"""

from __future__ import annotations

import time

import pytest

from fairbank.agent.protocol import Verdict
from tests.slurm.agent import let_run, say_nothing
from tests.slurm.conftest import Tell
from tests.slurm.lab.daemons import SLURMCTLD
from tests.slurm.lab.shell import UNTIL_TOLD
from tests.slurm.prep_cluster import PATIENCE, Desk, asking, runs, start_soon, wait_for_end
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


def test_slow_answer_delays_no_other_job(desk: Desk, tell: Tell) -> None:
    slow = desk.slurm.submit("alice", "--hold")
    desk.agent.waits = lambda request: request.run.job_id == slow
    desk.slurm.root("scontrol", "release", str(slow))
    wait_until(lambda: bool(desk.agent.asked(slow)), "the slow one to ask")
    begun = time.monotonic()
    other = desk.slurm.submit("bob")
    sbatch_seconds = time.monotonic() - begun
    begun = time.monotonic()
    assert desk.slurm.states(slow) == ["CONFIGURING"]
    squeue_seconds = time.monotonic() - begun
    desk.slurm.wait_for(other, "COMPLETED")
    assert desk.slurm.states(slow) == ["CONFIGURING"]
    desk.agent.answer.set()
    desk.slurm.wait_for(slow, "COMPLETED")
    tell(
        f"while an answer is pending: sbatch {sbatch_seconds * 1000:.0f} ms, squeue"
        f" {squeue_seconds * 1000:.0f} ms"
    )
    assert max(sbatch_seconds, squeue_seconds) < PATIENCE / 2, (
        "whoever waited for the answer would have waited until the plug-in's patience was over"
    )


def test_job_is_held_until_an_agent_runs(desk: Desk) -> None:
    desk.agent.stop()
    job = desk.slurm.submit("alice")
    desk.slurm.wait_for(job, "PENDING", "CONFIGURING")
    wait_until(
        lambda: desk.slurm.job(job).get("Reason") == "Fairbank_does_not_answer",
        "the job to be held",
        seconds=PATIENCE + 20,
    )
    refused = desk.slurm.run("bob", "srun", "true")
    assert "srun: Fairbank: the allocation bank does not answer" in refused.err
    assert desk.slurm.job(job)["Restarts"] == "1"
    desk.agent.start()
    wait_until(lambda: desk.slurm.job(job)["Priority"] != "0", "the job to be released")
    start_soon(desk, job)
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(desk, job, count=2)
    assert [(end.run.restart, end.begun) for end in desk.agent.ends(job)] == [(0, False), (1, True)]


def test_open_requests_are_repeated_to_a_restarted_agent(desk: Desk) -> None:
    desk.agent.policy = say_nothing
    jobs = [desk.slurm.submit(user) for user in ("alice", "bob", "carol")]
    wait_until(lambda: len(desk.agent.asked()) == 3, "three questions")
    desk.agent.stop()
    desk.agent.policy = let_run
    desk.agent.start()
    for job in jobs:
        desk.slurm.wait_for(job, "COMPLETED")
        wait_for_end(desk, job)
        assert {request.number for request in desk.agent.asked(job)} == {
            desk.agent.asked(job)[0].number
        }
        assert len(runs([*desk.agent.asked(job), *desk.agent.ends(job)])) == 1


def test_ends_are_repeated_until_acknowledged(desk: Desk) -> None:
    desk.agent.notes = False
    job = desk.slurm.submit("alice")
    desk.slurm.wait_for(job, "COMPLETED")
    wait_for_end(desk, job)
    desk.agent.stop()
    later = desk.slurm.submit("bob", "--hold")
    desk.agent.notes = True
    desk.agent.start()
    wait_for_end(desk, job, count=2)
    assert desk.agent.ends(job)[0] == desk.agent.ends(job)[1]
    desk.slurm.root("scancel", str(later))


def test_restarted_controller_repeats_open_requests(desk: Desk) -> None:
    desk.agent.policy = say_nothing
    job = desk.slurm.submit("alice")
    wait_until(lambda: bool(desk.agent.asked(job)), "the question")
    desk.slurm.write_down(job)
    desk.slurm.kill(SLURMCTLD)
    desk.agent.policy = let_run
    desk.slurm.start(SLURMCTLD)
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(desk, job)
    assert len(desk.agent.asked(job)) >= 2
    assert len(runs([*desk.agent.asked(job), *desk.agent.ends(job)])) == 1


def test_restarted_controller_reports_running_and_ended_jobs(desk: Desk) -> None:
    running = desk.slurm.submit("alice", "--time=10", script="sleep 600")
    desk.slurm.wait_for(running, "RUNNING")
    desk.agent.stop()
    desk.agent.heard.clear()
    desk.slurm.root("scontrol", "update", f"jobid={running}", "timelimit=15")
    ended = desk.slurm.submit("bob", "--hold")
    desk.slurm.run("bob", "scancel", str(ended)).done()
    desk.slurm.write_down(running)
    desk.slurm.kill(SLURMCTLD)
    desk.slurm.start(SLURMCTLD)
    desk.agent.start()
    wait_until(lambda: bool(desk.agent.limits(running)), "what runs to be told")
    assert desk.agent.limits(running)[0].limit_seconds == 15 * 60
    assert desk.agent.ends(ended) == []  # it never had nodes
    desk.slurm.run("alice", "scancel", str(running)).done()
    wait_for_end(desk, running)
    assert desk.agent.ends(running)[0].begun


def test_unreported_end_is_sent_after_a_restart(desk: Desk) -> None:
    job = desk.slurm.submit("alice", script=UNTIL_TOLD)
    desk.slurm.wait_for(job, "RUNNING")
    desk.agent.stop()
    desk.slurm.let_end("alice", job)
    desk.slurm.wait_for(job, "COMPLETED")
    desk.slurm.write_down(desk.slurm.submit("bob", "--hold"))  # and all other jobs with it
    desk.slurm.kill(SLURMCTLD)
    desk.slurm.start(SLURMCTLD)
    desk.agent.start()
    wait_for_end(desk, job)
    assert runs([*desk.agent.ends(job)]) == runs([*desk.agent.asked(job)])


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
def test_garbage_does_not_harm_slurmctld(desk: Desk, garbage: bytes) -> None:
    pid = desk.slurm.pid(SLURMCTLD)
    desk.agent.stop()
    desk.agent.raw = garbage
    met = desk.agent.connections
    desk.agent.start()
    wait_until(lambda: desk.agent.connections >= met + 2, "the plug-in to hang up and come again")
    desk.agent.stop()
    desk.agent.raw = None
    desk.agent.start()
    desk.slurm.wait_for(desk.slurm.submit("alice"), "COMPLETED")
    assert desk.slurm.pid(SLURMCTLD) == pid


def test_unknown_verdicts_are_ignored(desk: Desk) -> None:
    desk.agent.policy = lambda request: Verdict(number=request.number + 1000, action="cancel")
    job = desk.slurm.submit("alice")
    wait_until(lambda: bool(desk.agent.asked(job)), "the question")
    desk.agent.policy = let_run
    desk.agent.stop()
    desk.agent.start()
    desk.slurm.wait_for(job, "COMPLETED")


def test_open_outage_policy_lets_jobs_run(desk: Desk) -> None:
    with asking(desk.slurm, outage_policy="open", patience="1"):
        desk.agent.policy = say_nothing
        job = desk.slurm.submit("alice", script=UNTIL_TOLD)
        desk.slurm.wait_for(job, "RUNNING")
        desk.agent.stop()
        desk.agent.start()
        wait_until(lambda: bool(desk.agent.limits(job)), "the agent to hear of it after all")
        desk.slurm.let_end("alice", job)
        wait_for_end(desk, job)
        assert desk.agent.ends(job)[0].begun
        assert len(runs([*desk.agent.limits(job), *desk.agent.ends(job)])) == 1


@pytest.mark.parametrize(
    "changes",
    [{"colour": "red"}, {"patience": "soon"}, {"outage_policy": "ajar"}, {"socket": "prep.sock"}],
    ids=str,
)
def test_unknown_parameter_stops_slurmctld_at_its_start(
    desk: Desk, changes: dict[str, str]
) -> None:
    (name, value), *_ = changes.items()
    with (
        pytest.raises(
            RuntimeError, match=f"PrEpParameters: fairbank_{name}={value} is not understood"
        ),
        asking(desk.slurm, **changes),
    ):
        raise AssertionError("slurmctld has started")
