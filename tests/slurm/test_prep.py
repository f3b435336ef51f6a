"""Real jobs ask before they start and tell of their ends, through the plug-in, to an agent that does what a test wants."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from fairbank.slurm.records import Told, Verdict
from tests.slurm.agent import Agent, Policy, cancelling, holding, let_run, say_nothing
from tests.slurm.conftest import Tell
from tests.slurm.desk import PATIENCE, Desk, asking, build, install, socket_of
from tests.slurm.lab.answers import tres
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.configuration import NODE_TIMEOUT
from tests.slurm.lab.daemons import SLURMCTLD
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SHORT_OF_CREDIT = holding("Allocation_exhausted", "wg_astro lacks 3 SU of 30; ask your PI")


@pytest.fixture(scope="module")
def asked_cluster(cluster: Cluster, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    install(build(checkout, tmp_path_factory.mktemp("plugins")), cluster)
    with asking(cluster):
        yield cluster


@pytest.fixture
def desk(asked_cluster: Cluster) -> Iterator[Desk]:
    agent = Agent(socket_of(asked_cluster)).start()
    asked_cluster.calm()
    wait_until(lambda: agent.connections > 0, "the plug-in to find the agent")
    agent.heard.clear()
    try:
        yield Desk(asked_cluster, agent)
    finally:
        agent.policy, agent.raw, agent.notes = let_run, None, True
        agent.start() if agent.absent else None
        asked_cluster.calm()
        agent.stop()


def runs(told: list[Told]) -> set[tuple[int, int, int]]:
    return {(each.run.job_id, each.run.submitted, each.run.restart) for each in told}


def has_heard_ends(desk: Desk, count: int) -> bool:
    return len(desk.agent.ends()) >= count


def start_soon(desk: Desk, job: int) -> None:
    """Not two minutes after it was requeued, but not within the same second either: its credential would count as revoked."""
    desk.slurm.root("scontrol", "update", f"jobid={job}", "starttime=now+3")


def wait_for_end(desk: Desk, job: int, count: int = 1, seconds: float = 30) -> None:
    wait_until(lambda: len(desk.agent.ends(job)) >= count, f"the end of job {job} to be told", seconds=seconds)


# ---------------------------------------------------------------- what is said


def test_a_job_starts_after_the_answer_and_its_end_is_told(desk: Desk) -> None:
    job = desk.slurm.submit("carol", "--partition=gpu", "--cpus-per-task=16", "--gres=gpu:2", "--time=7", script="sleep 1; exit 3")
    desk.slurm.wait_for(job, "FAILED")
    wait_for_end(desk, job)
    (asked,), (end,) = desk.agent.asked(job), desk.agent.ends(job)
    (row,) = desk.slurm.wait_for_sacct(job, "FAILED")
    assert asked.run == end.run
    assert (asked.run.cluster, asked.run.restart) == ("lab", 0)
    assert (asked.account, asked.partition, asked.qos, asked.limit_seconds, asked.batch) == ("wg_bio", "gpu", "normal", 420, True)
    assert tres(asked.tres) == {"cpu": "16", "mem": "16000M", "node": "1", "billing": "24", "gres/gpu": "2"}
    assert asked.billing == 24
    assert (end.state, end.exit_status, end.begun) == ("FAILED", 3 << 8, True)
    assert end.elapsed_seconds == int(row["ElapsedRaw"]) == end.end - end.start


def test_billing_is_exact_where_accounting_rounds(desk: Desk) -> None:
    job = desk.slurm.submit("alice", "--partition=gpu-t4", "--cpus-per-task=1", "--mem=1G")
    desk.slurm.wait_for(job, "COMPLETED")
    assert desk.agent.asked(job)[0].billing == Fraction(1, 16)


def test_each_task_of_an_array_asks_for_itself(desk: Desk) -> None:
    job = desk.slurm.submit("dave", "--array=1-5%2")
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_until(lambda: len(desk.agent.ends()) == 5, "five ends")
    assert {each.array for each in desk.agent.asked()} == {(job, task) for task in range(1, 6)}
    assert runs([*desk.agent.asked()]) == runs([*desk.agent.ends()])
    assert len(runs([*desk.agent.asked()])) == 5


def test_each_component_of_a_heterogeneous_job_asks(desk: Desk) -> None:
    job = desk.slurm.submit("alice", "--ntasks=1", ":", "--ntasks=2", "--partition=gpu")
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_until(lambda: len(desk.agent.ends()) == 2, "two ends")
    assert {(each.het, each.partition) for each in desk.agent.asked()} == {((job, 0), "cpu"), ((job, 1), "gpu")}


def test_a_changed_time_limit_is_seen(desk: Desk) -> None:
    job = desk.slurm.submit("alice", "--time=10", script="sleep 600")
    desk.slurm.wait_for(job, "RUNNING")
    desk.slurm.root("scontrol", "update", f"jobid={job}", "timelimit=25")
    wait_until(lambda: bool(desk.agent.limits(job)), "the new limit to be told")
    (changed,) = desk.agent.limits(job)
    assert (changed.run, changed.limit_seconds) == (desk.agent.asked(job)[0].run, 25 * 60)


def test_time_in_suspension_is_not_run(desk: Desk) -> None:
    jobs = [desk.slurm.submit("alice", script="sleep 600") for _ in range(2)]
    for job in jobs:
        desk.slurm.wait_for(job, "RUNNING")
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


def test_a_refused_job_is_held_and_says_why(desk: Desk) -> None:
    desk.agent.policy = SHORT_OF_CREDIT
    jobs = [desk.slurm.submit("alice", option, "--comment=mine") for option in ("--requeue", "--no-requeue")]
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


def test_a_held_job_that_an_operator_releases_asks_again_as_another_run(desk: Desk) -> None:
    desk.agent.policy = SHORT_OF_CREDIT
    job = desk.slurm.submit("alice")
    wait_for_end(desk, job)
    desk.agent.policy = let_run
    desk.slurm.wait_for(job, "PENDING")
    desk.slurm.root("scontrol", "release", str(job))
    start_soon(desk, job)
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(desk, job, count=2)
    assert [each.run.restart for each in desk.agent.asked(job)] == [0, 1]
    assert [(each.run.restart, each.begun) for each in desk.agent.ends(job)] == [(0, False), (1, True)]
    assert "AdminComment=Fairbank" not in desk.slurm.root("scontrol", "show", "job", str(job))


def test_a_refused_heterogeneous_job_is_held_as_a_whole(desk: Desk) -> None:
    desk.agent.policy = SHORT_OF_CREDIT
    job = desk.slurm.submit("alice", "--ntasks=1", ":", "--ntasks=2", "--partition=gpu")
    wait_until(lambda: len(desk.agent.ends()) == 2, "two ends")
    desk.slurm.wait_for(job, "PENDING")
    reasons = desk.slurm.root("squeue", "--noheader", f"--jobs={job}", "--format=%r").split()
    assert reasons == ["Allocation_exhausted"] * 2


@pytest.mark.parametrize("policy", [cancelling("no credit left; ask your PI"), holding("Short", "no credit left; ask your PI")])
def test_who_waits_at_a_terminal_sees_why(desk: Desk, policy: Policy) -> None:
    desk.agent.policy = policy
    for command in ("srun", "salloc"):
        ran = desk.slurm.run("alice", command, "true")
        assert ran.code == 1
        assert f"{command}: Fairbank: no credit left; ask your PI\n" in ran.err
    wait_until(lambda: len(desk.agent.ends()) == 2, "two ends")
    assert {(each.state, each.begun) for each in desk.agent.ends()} == {("CANCELLED", False)}


def test_a_cancelled_script_leaves_a_comment_in_accounting(desk: Desk) -> None:
    desk.agent.policy = cancelling("no credit left")
    job = desk.slurm.submit("alice")
    desk.slurm.wait_for(job, "CANCELLED")
    assert "AdminComment=Fairbank: no credit left" in desk.slurm.root("scontrol", "show", "job", str(job))


# ---------------------------------------------------------------- slow, absent, restarted, mad


def test_a_slow_answer_delays_nobody_else(desk: Desk, tell: Tell) -> None:
    slow = desk.slurm.submit("alice", "--hold")
    desk.agent.delay = lambda asked: 3.0 if asked.run.job_id == slow else 0.0
    desk.slurm.root("scontrol", "release", str(slow))
    wait_until(lambda: bool(desk.agent.asked(slow)), "the slow one to ask")
    begun = time.monotonic()
    other = desk.slurm.submit("bob")
    submitted = time.monotonic() - begun
    begun = time.monotonic()
    assert desk.slurm.states(slow) == ["CONFIGURING"]
    looked = time.monotonic() - begun
    desk.slurm.wait_for(other, "COMPLETED")
    assert desk.slurm.states(slow) == ["CONFIGURING"]
    desk.slurm.wait_for(slow, "COMPLETED")
    tell(f"while an answer is pending: sbatch {submitted * 1000:.0f} ms, squeue {looked * 1000:.0f} ms")
    assert submitted < 1.5
    assert looked < 1.5


def test_without_an_agent_a_job_is_held_until_there_is_one(desk: Desk) -> None:
    desk.agent.stop()
    job = desk.slurm.submit("alice")
    desk.slurm.wait_for(job, "PENDING", "CONFIGURING")
    wait_until(lambda: desk.slurm.job(job).get("Reason") == "Fairbank_does_not_answer", "the job to be held", seconds=PATIENCE + 20)
    refused = desk.slurm.run("bob", "srun", "true")
    assert "srun: Fairbank: the allocation bank does not answer" in refused.err
    assert desk.slurm.job(job)["Restarts"] == "1"
    desk.agent.start()
    wait_until(lambda: desk.slurm.job(job)["Priority"] != "0", "the job to be released")
    start_soon(desk, job)
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)
    wait_for_end(desk, job, count=2)
    assert [(each.run.restart, each.begun) for each in desk.agent.ends(job)] == [(0, False), (1, True)]


def test_an_agent_that_dies_with_questions_open_is_asked_them_again(desk: Desk) -> None:
    desk.agent.policy = say_nothing
    jobs = [desk.slurm.submit(user) for user in ("alice", "bob", "carol")]
    wait_until(lambda: len(desk.agent.asked()) == 3, "three questions")
    desk.agent.stop()
    desk.agent.policy = let_run
    desk.agent.start()
    for job in jobs:
        desk.slurm.wait_for(job, "COMPLETED")
        wait_for_end(desk, job)
        assert {each.number for each in desk.agent.asked(job)} == {desk.agent.asked(job)[0].number}
        assert len(runs([*desk.agent.asked(job), *desk.agent.ends(job)])) == 1


def test_ends_are_repeated_until_they_are_noted(desk: Desk) -> None:
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


def test_a_controller_killed_with_questions_open_asks_them_again(desk: Desk) -> None:
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


def test_a_controller_that_comes_back_tells_what_runs_and_what_has_ended(desk: Desk) -> None:
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


def test_an_end_that_nobody_heard_is_told_after_a_restart(desk: Desk) -> None:
    job = desk.slurm.submit("alice", script="while [ ! -e over ]; do sleep 0.1; done; rm over")
    desk.slurm.wait_for(job, "RUNNING")
    desk.agent.stop()
    desk.slurm.file("alice", "over").touch()
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
    "a huge number": b"\x00\x00\x00\x34noted\nnumber=9999999999999999999999999999999999999\n",
    "a web server": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_does_not_harm_the_controller(desk: Desk, garbage: bytes) -> None:
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


def test_answers_to_nothing_are_passed_over(desk: Desk) -> None:
    desk.agent.policy = lambda asked: Verdict(number=asked.number + 1000, say="cancel")
    job = desk.slurm.submit("alice")
    wait_until(lambda: bool(desk.agent.asked(job)), "the question")
    desk.agent.policy = let_run
    desk.agent.stop()
    desk.agent.start()
    desk.slurm.wait_for(job, "COMPLETED")


def test_a_silent_agent_and_an_open_door(desk: Desk) -> None:
    with asking(desk.slurm, silence="open", patience="1"):
        desk.agent.policy = say_nothing
        job = desk.slurm.submit("alice", script="while [ ! -e over ]; do sleep 0.1; done; rm over")
        desk.slurm.wait_for(job, "RUNNING")
        desk.agent.stop()
        desk.agent.start()
        wait_until(lambda: bool(desk.agent.limits(job)), "the agent to hear of it after all")
        desk.slurm.file("alice", "over").touch()
        wait_for_end(desk, job)
        assert desk.agent.ends(job)[0].begun
        assert len(runs([*desk.agent.limits(job), *desk.agent.ends(job)])) == 1


@pytest.mark.parametrize("changes", [{"colour": "red"}, {"patience": "soon"}, {"silence": "ajar"}, {"socket": "prep.sock"}], ids=str)
def test_a_parameter_that_is_not_understood_stops_the_controller_at_its_start(desk: Desk, changes: dict[str, str]) -> None:
    (name, value), *_ = changes.items()
    with pytest.raises(RuntimeError, match=f"PrEpParameters: fairbank_{name}={value} is not understood"), asking(desk.slurm, **changes):
        raise AssertionError("slurmctld has started")


# ---------------------------------------------------------------- ends of other kinds


def test_a_job_cancelled_before_the_answer_goes_at_once(desk: Desk) -> None:
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
    assert [each.run for each in desk.agent.ends(job)] == [first.run, second.run]
    assert (first.run.restart, second.run.restart) == (0, 1)
    assert second.run.submitted > first.run.submitted
    assert [each.state for each in desk.agent.ends(job)] == ["REQUEUED", "COMPLETED"]


def test_a_job_requeued_before_the_answer_is_not_stuck(desk: Desk) -> None:
    desk.agent.policy = say_nothing
    job = desk.slurm.submit("alice", "--requeue")
    wait_until(lambda: bool(desk.agent.asked(job)), "the question")
    desk.slurm.root("scontrol", "requeue", str(job))
    wait_for_end(desk, job)
    desk.agent.policy = let_run
    desk.slurm.wait_for(job, "PENDING")
    start_soon(desk, job)
    desk.slurm.wait_for(job, "COMPLETED", seconds=60)


def test_the_failure_of_a_node_is_told_as_such(desk: Desk) -> None:
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


# ---------------------------------------------------------------- many


def test_of_many_quick_jobs_each_begins_and_ends_once(desk: Desk, tell: Tell) -> None:
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
    assert len({each.array for each in desk.agent.ends()}) == 300
    assert all(each.begun for each in desk.agent.ends())
