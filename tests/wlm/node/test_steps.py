"""Steps of a run on a node: they begin within it, end with it, and outlive the node daemon."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import msgspec
import pytest

from fairbank.cluster.job import Run
from fairbank.wlm.protocol.frames import INPUT, OUTPUT
from fairbank.wlm.protocol.messages import (
    Accepted,
    EndStep,
    ErrorMessage,
    ForgetStep,
    ListProcesses,
    Message,
    NotifyJob,
    PollNode,
    ProcessList,
    Registration,
    TaskStart,
)
from fairbank.wlm.stepd.step import read_start, read_step
from tests.support.conditions import wait_until
from tests.wlm.node.running_node import RunningNode, StartNode
from tests.wlm.node.test_jobs import program
from tests.wlm.stepd.reader import Reader


@pytest.fixture
def run(node: RunningNode) -> Run:
    """Return a run whose script waits."""
    run = node.submit("exec sleep 600")
    node.controller.wait(run, "running")
    return run


def attach(node: RunningNode, run: Run, step: int = 0, *, wants_input: bool = False) -> Reader:
    directory = node.directories.step_path(run, step)
    wait_until((directory / "started").exists, "the start of the step")
    return Reader(directory, credit=2**31, wants_input=wants_input)


def test_step_runs_beside_the_script(node: RunningNode, run: Run) -> None:
    script = "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_GTIDS; exit $SLURM_PROCID"
    tasks = (TaskStart(4), TaskStart(7))
    node.start_step(run, script, node_index=2, tasks=tasks)
    with attach(node, run) as reader:
        reader.receive_all()
    assert reader.output[OUTPUT, 4] + reader.output[OUTPUT, 7] == b"4 0 2 4,7\n7 1 2 4,7\n"
    end = node.controller.wait_for_step(run, 0)
    assert (end.cause, end.status) == ("exit", 7 << 8)
    assert "finished" not in node.controller.states(run)


def test_step_of_a_run_without_a_script_has_the_time_limit_of_the_run(node: RunningNode) -> None:
    """It may come before the process that holds the run."""
    start = node.job(b"", arguments=("/bin/sleep", "600"), output="/dev/null", seconds=900)
    node.controller.ask(start, Accepted)
    node.start_step(start.run, "exec sleep 600")
    seconds = read_step(str(node.directories.step_path(start.run, 0))).seconds
    assert seconds == pytest.approx(900, abs=60)
    node.controller.end(start.run, "cancelled")
    node.controller.wait(start.run, "finished")
    states = node.controller.states(start.run)
    assert states == ["starting", "running", "epilog", "finished"]


def test_repeated_start_of_a_step_starts_nothing_more(node: RunningNode, run: Run) -> None:
    start = node.start_step(run, "echo once; read line")
    for _ in range(3):
        node.controller.ask(start, Accepted)
    with attach(node, run, wants_input=True) as reader:
        reader.send(INPUT)
        reader.receive_all()
    assert reader.output[OUTPUT, 0] == b"once\n"


def test_steps_end_with_the_script(node: RunningNode) -> None:
    run = node.submit("read line < fifo")
    os.mkfifo(node.folder / "fifo")
    node.controller.wait(run, "running")
    start = node.start_step(run, "echo ready; exec sleep 600")
    with attach(node, run) as reader:
        reader.receive_until(b"ready\n")
        with (node.folder / "fifo").open("w") as fifo:
            fifo.write("\n")
        reader.receive_all()
    assert reader.exits == {0: signal.SIGTERM}
    assert node.controller.wait_for_step(run, 0).cause == "request"
    node.controller.wait(run, "finished")
    late = msgspec.structs.replace(start, step=1)
    assert node.controller.ask(late, ErrorMessage).kind == "Conflict"


def test_step_is_ended_and_signalled_alone(node: RunningNode, run: Run) -> None:
    node.start_step(run, "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done")
    with attach(node, run) as reader:
        reader.receive_until(b"ready\n")
        wait_until(lambda: reported(node), "the step to be reported as running")
        node.controller.ask(EndStep(run=run, step=0, number=signal.SIGUSR1), Accepted)
        reader.receive_until(b"usr1\n")
        node.controller.ask(EndStep(run=run, step=0, reason="CANCELLED"), Accepted)
        reader.receive_all()
    end = node.controller.wait_for_step(run, 0)
    assert (end.cause, end.text, end.status) == ("request", "CANCELLED", signal.SIGTERM)
    assert node.controller.states(run)[-1] == "running"


def test_signal_during_the_start_of_a_step_reaches_its_tasks(node: RunningNode, run: Run) -> None:
    node.start_step(run, "exec sleep 600")
    node.controller.ask(EndStep(run=run, step=0, number=signal.SIGUSR1), Accepted)
    assert node.controller.wait_for_step(run, 0).status == signal.SIGUSR1


@pytest.mark.parametrize("number", [0, signal.SIGUSR1])
def test_end_of_a_step_that_is_not_written_down_yet_is_kept(
    node: RunningNode, run: Run, number: int
) -> None:
    daemon = read_start(str(node.directories.path(run)))
    assert daemon is not None
    os.kill(daemon.daemon, signal.SIGSTOP)  # the start asks it for the time that is left
    node.controller.send(node.step_to_start(run, "touch ran; exec sleep 600"))
    node.controller.ask(EndStep(run=run, step=0, number=number, reason="CANCELLED"), Accepted)
    os.kill(daemon.daemon, signal.SIGCONT)
    assert node.controller.wait_for_step(run, 0).status == (number or signal.SIGTERM)
    assert number or not (node.folder / "ran").exists()


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_step_that_waits_for_the_begin_of_its_run_is_registered(
    start_node: StartNode, tmp_path: Path, is_cancelled: bool
) -> None:
    go = tmp_path / "go"
    prolog = program(tmp_path, f"until [ -e {go} ]; do sleep 0.05; done")
    node = start_node(prolog=str(prolog))
    run = node.submit(b"", arguments=("/bin/sleep", "600"), output="/dev/null")
    node.controller.send(node.step_to_start(run, "exit 3"))
    registration = node.controller.ask(PollNode(), Registration)
    assert [(one.step, one.end) for one in registration.steps] == [(0, None)]
    if is_cancelled:
        node.controller.end(run, "cancelled")
    go.touch()
    if is_cancelled:
        assert node.controller.wait_for_step(run, 0).cause == "launch"
        assert not node.directories.steps(run)
    else:
        assert node.controller.wait_for_step(run, 0).status == 3 << 8


def test_step_and_its_output_outlive_a_killed_node_daemon(node: RunningNode, run: Run) -> None:
    node.start_step(run, "echo one; read line; echo two; exit 5")
    with attach(node, run, wants_input=True) as reader:
        reader.receive_until(b"one\n")
        node.kill()
        reader.send(INPUT, body=b"go on\n")
        reader.receive_all()
    assert reader.output[OUTPUT, 0] == b"one\ntwo\n"
    node.start()
    assert node.controller.wait_for_step(run, 0).status == 5 << 8


def test_step_goes_on_under_the_next_node_daemon(node: RunningNode, run: Run) -> None:
    node.start_step(run, "read line; exit 6")
    reader = attach(node, run, wants_input=True)
    node.restart()
    assert [(one.run, one.step) for one in node.controller.registration.steps] == [(run, 0)]
    reader.send(INPUT, body=b"\n")
    reader.receive_all()
    assert node.controller.wait_for_step(run, 0).status == 6 << 8


def test_processes_of_a_killed_step_daemon_are_ended(node: RunningNode, run: Run) -> None:
    node.start_step(
        run, "trap '' TERM HUP; exec sleep 600", tasks=(TaskStart(0, input="/dev/null"),)
    )
    directory = node.directories.step_path(run, 0)
    wait_until((directory / "started").exists, "the start of the step")
    start = read_start(str(directory))
    assert start is not None
    os.kill(start.daemon, signal.SIGKILL)
    assert node.controller.wait_for_step(run, 0).cause == "step_daemon_killed"
    assert node.step_processes(run, 0) == set()
    assert node.controller.states(run)[-1] == "running"


def test_processes_are_listed_with_their_step(node: RunningNode, run: Run) -> None:
    node.start_step(run, "exec sleep 600", step=3)

    def steps() -> set[int | None]:
        answer = node.controller.ask(ListProcesses(run=run), ProcessList)
        return {process.step for process in answer.processes}

    wait_until(lambda: steps() == {None, 3}, "both processes")


def test_processes_that_are_tasks_are_listed_with_their_numbers(
    node: RunningNode, run: Run
) -> None:
    tasks = (TaskStart(rank=1), TaskStart(rank=3))
    node.start_step(run, "sleep 600 & echo $$ > $SLURM_PROCID; exec sleep 600", tasks=tasks)

    def listed() -> list[tuple[int | None, int | None]]:
        answer = node.controller.ask(ListProcesses(run=run), ProcessList)
        return [(one.local, one.rank) for one in answer.processes if one.step == 0]

    expected = [(0, 1), (1, 3), (None, None), (None, None)]
    wait_until(lambda: listed() == expected, "two tasks with a process each")


def ranks(node: RunningNode, run: Run) -> list[tuple[int | None, int | None]]:
    """Return the step and the rank of each process of a run."""
    answer = node.controller.ask(ListProcesses(run=run), ProcessList)
    return [(process.step, process.rank) for process in answer.processes]


def test_processes_of_a_stopped_step_daemon_are_listed_without_their_numbers(
    node: RunningNode, run: Run
) -> None:
    node.start_step(run, "exec sleep 600")
    wait_until(lambda: ranks(node, run) == [(None, 0), (0, 0)], "the script and the step")
    start = read_start(str(node.directories.step_path(run, 0)))
    assert start is not None
    os.kill(start.daemon, signal.SIGSTOP)
    assert ranks(node, run) == [(None, 0), (0, None)]
    os.kill(start.daemon, signal.SIGCONT)
    wait_until(lambda: ranks(node, run) == [(None, 0), (0, 0)], "an answer")


def test_stopped_step_daemon_keeps_no_step_of_its_job_from_its_end(
    node: RunningNode, run: Run
) -> None:
    node.start_step(run, "exec sleep 600")
    wait_until(lambda: ranks(node, run) == [(None, 0), (0, 0)], "the script and the step")
    daemon = node.step(run).daemon
    os.kill(daemon, signal.SIGSTOP)
    node.controller.end(run)
    assert node.controller.wait_for_step(run, 0).cause == "request"
    os.kill(daemon, signal.SIGCONT)
    end = node.controller.wait(run, "finished").end
    assert end is not None
    assert end.cause == "request"


def test_forgotten_step_stays_until_an_srun_has_its_output(node: RunningNode, run: Run) -> None:
    node.start_step(run, "echo kept")
    node.controller.wait_for_step(run, 0)
    node.controller.ask(ForgetStep(run=run, step=0), Accepted)
    with attach(node, run) as reader:
        reader.receive_all()
    assert reader.output[OUTPUT, 0] == b"kept\n"

    def known() -> int:
        node.controller.ask(ForgetStep(run=run, step=0), Accepted)
        return len(node.controller.ask(PollNode(), Registration).steps)

    wait_until(lambda: known() == 0, "the removal of the step")
    assert not node.directories.step_path(run, 0).exists()


def test_script_and_step_may_end_at_the_same_time(node: RunningNode) -> None:
    fifo = node.folder / "fifo"
    os.mkfifo(fifo)
    for number in range(1, 21):
        run = node.submit(f"exec cat {fifo}", number)
        node.controller.wait(run, "running")
        node.start_step(run, f"exec cat {fifo}")
        wait_until((node.directories.step_path(run, 0) / "started").exists, "the step")
        with fifo.open("w"):
            wait_until(partial(has_two_readers, node, run), "both readers")
        node.controller.wait(run, "finished")


def test_step_may_be_forgotten_while_its_run_ends(node: RunningNode) -> None:
    os.mkfifo(node.folder / "fifo")
    run = node.submit("read line < fifo")
    node.controller.wait(run, "running")
    node.start_step(run, "exec sleep 600")
    wait_until(lambda: reported(node), "the step to be reported as running")
    node.start_step(run, "exit 3", step=1)
    with attach(node, run, 1) as reader:
        reader.receive_all()
    node.controller.wait_for_step(run, 1)
    wait_until(lambda: not node.step_processes(run, 1), "the end of its streams")
    start = read_start(str(node.directories.step_path(run, 0)))
    assert start is not None
    os.kill(start.daemon, signal.SIGSTOP)  # the end of the run waits for its answer
    with (node.folder / "fifo").open("w") as fifo:
        fifo.write("\n")
    notice = NotifyJob(run=run, text="still here")
    wait_until(
        lambda: isinstance(node.controller.ask(notice, Message), ErrorMessage),
        "the end of the script",
    )
    node.controller.ask(ForgetStep(run=run, step=1), Accepted)
    assert [one.step for one in node.controller.ask(PollNode(), Registration).steps] == [0]
    os.kill(start.daemon, signal.SIGCONT)
    node.controller.wait(run, "finished")


def reported(node: RunningNode) -> bool:
    """Return True if the node has reported a step."""
    node.controller.ask(PollNode(), Registration)
    return bool(node.controller.steps)


def has_two_readers(node: RunningNode, run: Run) -> bool:
    """Return True if two processes of a run have the FIFO open."""
    answer = node.controller.ask(ListProcesses(run=run), ProcessList)
    return sum(_has_open(one.pid, node.folder / "fifo") for one in answer.processes) == 2


def _has_open(pid: int, path: Path) -> bool:
    try:
        return any(file.readlink() == path for file in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
