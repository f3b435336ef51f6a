"""sattach and `srun --attach` with the real controller and a node daemon."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.stepd.streams import LAG_MAX
from tests.support.conditions import wait_until
from tests.wlm.commands.shell import Shell, sh
from tests.wlm.controller.small_cluster import SmallCluster

SCRIPT = "echo one; read line; echo two $line; exit 6"


@contextmanager
def step_of(
    shell: Shell, cluster: SmallCluster, *words: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run srun. Yield its step as soon as there is a first line, and its process."""
    with shell.start("srun", *words, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("one\n")
        job = str(max(map(int, cluster.jobs())))
        with Controller(cluster.directory) as controller:
            step = requests.find_step(controller, job).step
            try:
                yield f"{step.job}.{step.step}", process
            finally:
                requests.change_jobs(controller, "cancel", [job])


def test_attached_command_gets_what_comes_now_or_everything(
    shell: Shell, cluster: SmallCluster
) -> None:
    with step_of(shell, cluster, *sh(SCRIPT)) as (step, process):
        late = shell.start("sattach", step, stdin=subprocess.PIPE)
        whole = shell.start("srun", "--attach", step, "--from-start")
        assert late.stderr is not None
        note = f"sattach: StepId={step} gets its input from another srun, or has had it all\n"
        assert late.stderr.readline() == note
        assert whole.stdout is not None
        assert whole.stdout.readline() == "one\n"
        assert process.communicate("now\n", timeout=60)[0] == "two now\n"
        assert late.communicate(timeout=60)[0] == "two now\n"
        assert whole.communicate(timeout=60)[0] == "two now\n"
    assert (process.returncode, late.returncode, whole.returncode) == (6, 6, 6)


def test_attached_command_that_is_stopped_for_long_says_what_it_missed(
    shell: Shell, cluster: SmallCluster
) -> None:
    script = f"echo one; read line; seq 1000000 {10**6 + LAG_MAX // 4}"
    with step_of(shell, cluster, *sh(script)) as (step, process):
        attached = shell.start("sattach", "--from-start", step)
        assert attached.stdout is not None
        assert attached.stdout.readline() == "one\n"
        attached.send_signal(signal.SIGSTOP)
        whole, _ = process.communicate("now\n", timeout=60)
        assert len(whole) > 2 * LAG_MAX
        attached.send_signal(signal.SIGCONT)
        part, err = attached.communicate(timeout=60)
    what = r"sattach: error: (\d+) bytes of the output of task 0 are missing here: .*"
    notes = [re.fullmatch(what, note) for note in err.splitlines()]
    assert notes, err
    assert len(part) + sum(int(note[1]) for note in notes if note is not None) == len(whole)


def test_step_goes_on_without_an_srun_and_can_be_attached(
    shell: Shell, cluster: SmallCluster
) -> None:
    script = "echo one; while [ ! -e go ]; do sleep 0.05; done; seq 5; read line; echo $line"
    with step_of(shell, cluster, *sh(script)) as (step, process):
        process.kill()
        process.wait()
        (shell.directory / "go").touch()
        code, out, err = shell.run("sattach", step, text="input\n")
    # It comes again if srun was killed before it could say that it had written it.
    assert (code, err, out[out[0] == "one" :]) == (0, [], ["1", "2", "3", "4", "5", "input"])


def test_attached_command_leaves_out_a_node_whose_tasks_have_ended(
    shell: Shell, cluster: SmallCluster
) -> None:
    script = "[ $SLURM_NODEID = 1 ] && exit 3; echo one; read line; echo two $line"
    with step_of(shell, cluster, "-N2", "-n2", *sh(script)) as (step, process):
        with Controller(cluster.directory) as controller:

            def running() -> list[bool]:
                job, _, number = step.partition(".")
                known = requests.find_step(controller, job, int(number))
                return [node.is_running for node in known.step.nodes]

            wait_until(lambda: running() == [True, False], "the end of the task on the second node")
        process.kill()
        process.wait()
        code, out, err = shell.run("sattach", step, text="now\n")
    assert (code, out[-1:], err) == (3, ["two now"], [])


def test_attached_command_waits_for_no_node_that_has_not_registered(
    shell: Shell, cluster: SmallCluster
) -> None:
    command = ("srun", *sh("echo one; read line; echo two $line"))
    with shell.start(*command, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        cluster.kill_node()
        cluster.kill_controller()
        cluster.start_controller(nodes=())
        step = f"{max(map(int, cluster.jobs()))}.0"
        code, out, err = shell.run("sattach", step)
        sentence = f"sattach: error: node n1 of step {step} has not registered"
        assert (code, out, err[:1]) == (1, [], [sentence])
        cluster.start_node()
        assert process.communicate("now\n", timeout=60)[0] == "two now\n"
    assert process.returncode == 0


def test_end_of_an_attached_command_leaves_the_step(shell: Shell, cluster: SmallCluster) -> None:
    with step_of(shell, cluster, *sh(SCRIPT)) as (step, process):
        attached = shell.start("sattach", "--from-start", step)
        assert attached.stdout is not None
        assert attached.stdout.readline() == "one\n"
        attached.send_signal(signal.SIGINT)
        assert attached.wait(60) == 130
        attached.communicate()
        with (
            Path("/dev/full").open("w") as full,
            shell.start("sattach", "--from-start", step, stdout=full) as failing,
        ):
            assert "No space left" in failing.communicate(timeout=60)[1]
        assert process.communicate("on\n", timeout=60)[0] == "two on\n"
    assert process.returncode == 6


def test_attached_srun_forwards_signals(shell: Shell, cluster: SmallCluster) -> None:
    script = "trap 'echo usr1; exit' USR1; echo one; while :; do sleep 0.05; done"
    with step_of(shell, cluster, *sh(script)) as (step, process):
        with shell.start("srun", f"--attach={step}", "--from-start") as attached:
            assert attached.stdout is not None
            assert attached.stdout.readline() == "one\n"
            attached.send_signal(signal.SIGUSR1)
            assert attached.communicate(timeout=60)[0] == "usr1\n"
        assert process.communicate(timeout=60)[0] == "usr1\n"


def test_output_of_one_task_may_be_shown_alone(shell: Shell, cluster: SmallCluster) -> None:
    script = "echo one; echo e >&2; read line; echo two; echo f >&2"
    with step_of(shell, cluster, "-n", "4", *sh(script)) as (step, process):
        words = ("sattach", "--from-start", "-l", "--output-filter=3", step)
        filtered = shell.start(*words)
        errors = shell.start(*words, "--error-filter", "0")
        code, _, err = shell.run("sattach", "--output-filter=4", step)
        assert (code, err[0]) == (
            1,
            f"sattach: error: --output-filter: StepId={step} has no task 4",
        )
        assert "it has 4 tasks" in err[1]
        for one in (filtered, errors):
            assert one.stdout is not None
            assert one.stdout.readline() == "3: one\n"
        _, layout, _ = shell.run("sattach", "--layout", step)
        process.communicate("\n", timeout=60)
        assert filtered.communicate(timeout=60) == ("3: two\n", "3: e\n3: f\n")
        assert errors.communicate(timeout=60) == ("3: two\n", "0: e\n0: f\n")
    assert layout == [
        "Job step layout:",
        "\t4 tasks, 2 nodes (n[1-2])",
        "",
        "\tNode 0 (n1), 2 task(s): 0 1 ",
        "\tNode 1 (n2), 2 task(s): 2 3 ",
    ]


@pytest.mark.parametrize("what", ["step", "job"])
def test_output_that_no_srun_has_can_be_had_after_the_end(
    shell: Shell, cluster: SmallCluster, what: str
) -> None:
    script = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 3"
    with step_of(shell, cluster, *sh(script)) as (step, process):
        process.kill()
        process.wait()
        (shell.directory / "go").touch()
        job = step.partition(".")[0]
        with Controller(cluster.directory) as controller:

            def has_ended() -> bool:
                return requests.find_step(controller, job, 0).state != "RUNNING"

            wait_until(has_ended, "the end of the step")
            if what == "job":
                requests.change_jobs(controller, "cancel", [job])
                wait_until(lambda: not cluster.busy_jobs(), "the end of the job")
        first = shell.run("sattach", step)
        assert (first[0], first[1][-1]) == (3, "two")
        code, out, err = shell.run("sattach", step)
    assert (code, out) == (1, [])
    assert "has ended: FAILED" in err[0]


def test_two_that_attach_at_once_give_input_to_all_nodes_or_none(
    shell: Shell, cluster: SmallCluster
) -> None:
    script = "echo one; while [ ! -e go ]; do sleep 0.05; done; read line; echo got $line"
    with step_of(shell, cluster, "-N", "2", *sh(script)) as (step, process):
        process.kill()
        process.wait()
        words = ("srun", "--attach", step, "--from-start")
        both = [shell.start(*words, stdin=subprocess.PIPE) for _ in range(2)]
        for one in both:
            assert one.stdout is not None
            assert [one.stdout.readline() for _ in range(2)] == ["one\n", "one\n"]
        (shell.directory / "go").touch()
        for number, one in enumerate(both):
            assert one.stdin is not None
            one.stdin.write(f"{number}\n")
            one.stdin.flush()
        outs = [one.communicate(timeout=60) for one in both]
    assert sum("gets its input" in err for _, err in outs) == 1
    giver = next(number for number, (_, err) in enumerate(outs) if "gets" not in err)
    every = "".join(out for out, _ in outs).splitlines()
    assert {line for line in every if line.startswith("got")} == {f"got {giver}"}


def test_srun_at_a_terminal_goes_to_the_background_and_back(
    shell: Shell, cluster: SmallCluster
) -> None:
    script = (
        "echo one; read line; echo got $line; while [ ! -e go ]; do sleep 0.05; done; seq 2000;"
        "read line || echo over; while [ ! -e on ]; do sleep 0.05; done; echo e >&2; exit 3"
    )
    master, slave = pty.openpty()
    with shell.start("srun", *sh(script), stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        os.write(master, b"~~ hello ~&\n")
        shown = read_until(master, b"got ~ hello ~&\r\n")
        os.write(master, b"~&\n")
        shown += read_until(master, b"--attach ")
        assert process.wait(60) == 0
    os.close(master)
    job = max(map(int, cluster.jobs()))
    assert shown.decode().splitlines()[-2:] == [
        f"srun: StepId={job}.0 goes on in the background; its output goes to slurm-{job}.0.out,"
        f" slurm-{job}.0.err",
        f"srun: attach again with: srun --attach {job}.0",
    ]
    (shell.directory / "go").touch()
    output, errors = (shell.directory / f"slurm-{job}.0.{one}" for one in ("out", "err"))
    wait_until(lambda: output.read_text().endswith("over\n"), "the output in the file")
    with shell.start("srun", "--attach", f"{job}.0", "--from-start") as attached:
        assert attached.stdout is not None
        assert attached.stdout.readline() == "one\n"
        (shell.directory / "on").touch()
        attached.communicate(timeout=60)
    assert attached.returncode == 3
    cluster.wait_for_state(job, "FAILED")
    lines = [*map(str, range(1, 2_001)), "over"]
    assert output.read_text().splitlines() == lines
    assert errors.read_text() == "e\nsrun: error: n1: task 0: Exited with exit code 3\n"
    assert not {*shown.decode().splitlines()} & {*lines}


def test_terminal_of_a_step_in_the_background_can_be_had_again(
    shell: Shell, cluster: SmallCluster
) -> None:
    script = "echo one; read line; echo got $line; read line; echo got $line"
    master, slave = pty.openpty()
    ends = {"stdin": slave, "stdout": slave, "stderr": slave}
    with shell.start("srun", "--pty", *sh(script), **ends) as process:
        read_until(master, b"one\r\n")
        os.write(master, b"first\r~&")
        shown = read_until(master, b"--pty")
        assert process.wait(60) == 0
    job = max(map(int, cluster.jobs()))
    assert f"srun --attach {job}.0 --pty" in shown.decode()
    words = ("srun", "--attach", f"{job}.0", "--pty", "--from-start")
    with shell.start(*words, **ends) as process:
        read_until(master, b"got first")
        os.write(master, b"second\r")
        read_until(master, b"got second")
        assert process.wait(60) == 0
    os.close(slave)
    os.close(master)


def read_until(master: int, text: bytes) -> bytes:
    """Return what a terminal shows until the end of the line with a text."""
    shown = b""
    while text not in shown or not shown.endswith(b"\n"):
        shown += os.read(master, 4_096)
    return shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("sattach", "999.0"), "Invalid job id specified"),
        (("sattach", "x.0"), "'x' is not a job"),
        (("sattach", "1.x"), "is not a step"),
        (("sattach", "1.batch"), "Cannot be used with extern or batch steps"),
        (("sattach",), "one step is needed"),
        (("sattach", "1.0", "2.0"), "one step is needed"),
        (("sattach", "--input-filter=0", "1.0"), "srun -i chooses the task"),
        (("sattach", "--output-filter=x", "1.0"), "is not the number of a task"),
        (("sattach", "--pty", "--output-filter=0", "1.0"), "both --pty and I/O filtering"),
        (("srun", "--attach", "999"), "Invalid job id specified"),
        (("srun", "--attach=1.0", "hostname"), "takes no program"),
        (("srun", "--attach=1.0", "-n", "2"), "--ntasks has no meaning with --attach"),
    ],
)
def test_bad_request_is_refused_in_a_sentence(
    shell: Shell, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence.lower() in shell.refusal(*words).lower()


def test_job_with_several_steps_needs_the_number_of_one(
    shell: Shell, cluster: SmallCluster
) -> None:
    script = (
        "srun -n 1 --exact sh -c 'touch one; while [ ! -e go ]; do sleep 0.05; done' &\n"
        "srun -n 1 --exact sh -c 'touch two; while [ ! -e go ]; do sleep 0.05; done' &\nwait\n"
    )
    with shell.start("salloc", "-n", "2", *sh(script)) as process:
        wait_until(lambda: len(list(shell.directory.glob("[ot][nw][eo]"))) == 2, "two steps")
        job = max(map(int, cluster.jobs()))
        code, _, err = shell.run("srun", "--attach", str(job))
        (shell.directory / "go").touch()
        process.communicate(timeout=60)
    assert code == 1
    assert re.search(rf"2 steps that run.*{job}\.0, {job}\.1", " ".join(err))
