"""srun and salloc with the real controller and a node daemon: what they print, and how they end."""

from __future__ import annotations

import os
import pty
import re
import signal
import termios
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.stepd.task import JOB_FAULT_CODE
from tests.support.conditions import wait_until
from tests.wlm.commands.shell import Shell, sh
from tests.wlm.controller.small_cluster import SmallCluster


def test_step_prints_what_its_tasks_write(shell: Shell) -> None:
    code, out, err = shell.run("srun", "-n", "4", "-l", *sh("echo $SLURMD_NODENAME; echo e >&2"))
    assert (code, sorted(out)) == (0, ["0: n1", "1: n1", "2: n2", "3: n2"])
    assert sorted(err) == ["0: e", "1: e", "2: e", "3: e"]


@contextmanager
def stopped_node(cluster: SmallCluster) -> Iterator[None]:
    """Stop the node daemon for a while, when no job has nodes."""
    wait_until(lambda: not cluster.busy_jobs(), "the nodes to be free")
    cluster.node.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.node.send_signal(signal.SIGCONT)


def test_job_whose_nodes_have_not_begun_is_no_allocation_yet(
    cluster: SmallCluster, shell: Shell
) -> None:
    with stopped_node(cluster):
        process = shell.start("srun", "-N", "2", "true")
        with Controller(cluster.directory) as controller:

            def configured() -> list[int]:
                # Jobs of other tests have ended, and are shown for a while.
                rows = requests.rows(controller, "jobs", ["job_id", "flag"]).rows or ()
                return [job for job, flag in rows if flag == "CONFIGURING"]

            wait_until(configured, "nodes for the job")
            (number,) = configured()
            early = requests.wait_for_start(controller, number, 0.6)
            # That of srun waits on the nodes for their begin.
            step = requests.find_step(controller, str(number), 0)
    out, err = process.communicate(timeout=60)
    assert (early.state, early.environment) == ("CONFIGURING", {})
    assert step.state == "RUNNING"
    assert (process.returncode, out, err) == (0, "", "")


def test_repeated_wait_for_the_start_of_a_job_creates_its_step_once(
    cluster: SmallCluster, shell: Shell
) -> None:
    job = requests.JobToSubmit(b"", {"time": "10"}, str(shell.directory), command="srun")
    ran = shell.directory / "ran"
    words = ("/bin/sh", "-c", f"echo $SLURM_JOB_ID >> {ran}")
    step = requests.StepToStart({}, words, "/", key="own")
    with Controller(cluster.directory) as controller:
        number = requests.submit(controller, job).job
        first = requests.wait_for_start(controller, number, step=step).step
        assert first is not None
        state = partial(requests.find_step, controller, str(number), first.step)
        wait_until(lambda: state().state != "RUNNING", "the end of the step")
        assert state().state == "COMPLETED"
        repeated = step._replace(repeated=True)
        again = requests.wait_for_start(controller, number, step=repeated).step
        requests.complete(controller, number, 0)
    assert again is not None
    assert again.step == first.step
    assert ran.read_text() == f"{number}\n"


def test_job_that_ends_before_it_has_begun_is_revoked_although_its_nodes_are_not_cleared(
    cluster: SmallCluster, shell: Shell
) -> None:
    with stopped_node(cluster):
        process = shell.start("srun", "-N", "2", "true")
        wait_until(lambda: "CONFIGURING" in str(cluster.jobs()), "nodes for the job")
        (number,) = cluster.busy_jobs()
        with Controller(cluster.directory) as controller:
            requests.change_jobs(controller, "cancel", [str(number)])
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert err.endswith(f"srun: error: Job allocation {number} has been revoked (CANCELLED)\n")


def test_step_ends_as_its_tasks_although_its_job_ends_with_it(
    cluster: SmallCluster, shell: Shell
) -> None:
    """srun often hears of the end before the controller does, most often if many end at once."""
    first = max([0, *map(int, cluster.jobs())]) + 1
    for process in [shell.start("srun", *sh("exit 3")) for _ in range(24)]:
        assert process.communicate(timeout=60)[0] == ""
        assert process.returncode == 3
    jobs = range(first, first + 24)
    words = ("-n", "-P", "-j", ",".join(map(str, jobs)), "-o", "jobid,exitcode,derivedexitcode")
    lines = [line for job in jobs for line in (f"{job}|3:0|3:0", f"{job}.0|3:0|")]
    assert sorted(shell.run("sacct", *words)[1]) == sorted(lines)


def test_job_is_completed_after_the_step_that_its_srun_names(
    cluster: SmallCluster, shell: Shell
) -> None:
    os.mkfifo(shell.directory / "go")
    process = shell.start("srun", *sh("touch begun; read line < go; exit 3"))
    wait_until((shell.directory / "begun").exists, "the step")
    (number,) = cluster.busy_jobs()
    with Controller(cluster.directory) as controller, ThreadPoolExecutor(1) as thread:
        end = thread.submit(requests.complete, controller, int(number), 0, step=0)
        process.send_signal(signal.SIGSTOP)  # its own request would come first
        (shell.directory / "go").write_text("go on\n")
        end.result(60)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    lines = shell.run("sacct", "-n", "-P", "-j", number, "-o", "jobid,state,exitcode")[1]
    assert lines == [f"{number}|COMPLETED|0:0", f"{number}.0|FAILED|3:0"]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--input=none-%t", r"the input \S*none-[01]: No such file or directory"),
        ("--output=/proc/none-%t", "the output /proc/none-[01]: No such file or directory"),
        ("--error=link-%t", r"the error output \S*/link-0: it is a symbolic link; .*"),
        ("--output=link-%t", r"the output \S*/link-0: it is a symbolic link; .*"),
    ],
)
def test_task_whose_file_cannot_be_opened_ends_its_step_with_the_reason(
    shell: Shell, option: str, reason: str
) -> None:
    (shell.directory / "link-0").symlink_to("target")
    code, out, err = shell.run("srun", "-n", "2", option, "true")
    assert (code, out) == (JOB_FAULT_CODE, [])
    assert any(line.endswith(f"Exited with exit code {JOB_FAULT_CODE}") for line in err), err
    assert any(re.fullmatch(f"slurmstepd: error: cannot open {reason}", line) for line in err), err
    assert shell.run("srun", "true") == (0, [], [])


@pytest.mark.parametrize("nodes", ["1", "2"])
def test_step_whose_step_daemon_was_killed_has_failed_and_says_why(
    shell: Shell, nodes: str
) -> None:
    with shell.start("srun", "-N", nodes, *sh("echo $SLURM_JOB_ID $PPID; sleep 300")) as process:
        assert process.stdout is not None
        job, daemon = process.stdout.readline().split()
        os.kill(int(daemon), signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.search("error: the step daemon on node n[12] has ended before its step", errors)
    _, lines, _ = shell.run("sacct", "-nPj", job, "-o", "State,ExitCode,SystemComment")
    own, step = (line.split("|") for line in lines)
    assert (own[:2], step[0]) == (["FAILED", "1:0"], "FAILED")
    assert step[1] in ("0:9", "0:15")  # the tasks of the other node are ended with SIGTERM
    comment = r"step 0 on node n[12]: the step daemon was killed, and its processes were ended"
    assert re.fullmatch(comment, own[2])


def test_step_whose_tasks_outlive_its_step_daemon_has_failed_although_its_job_ends_at_once(
    shell: Shell,
) -> None:
    """The node reports the end of the step only when its tasks, which ignore SIGTERM, are gone."""
    task = "trap : TERM; echo $SLURM_JOB_ID $PPID; while :; do sleep 1; done"
    with shell.start("salloc", "-Q", "srun", "-N", "1", *sh(task)) as process:
        assert process.stdout is not None
        job, daemon = process.stdout.readline().split()
        os.kill(int(daemon), signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.search("error: the step daemon on node n[12] has ended before its step", errors)
    _, lines, _ = shell.run("sacct", "-nPj", job, "-o", "State,ExitCode,SystemComment")
    comment = r"step 0 on node n[12]: srun lost its connection to the step daemon"
    assert re.fullmatch(rf"FAILED\|1:0\|{comment}", lines[0])
    assert lines[1:] == ["FAILED|0:9|"]


def without_waits(err: list[str]) -> list[str]:
    """Return the errors without the lines about a wait for nodes, which an earlier job may have."""
    return [line for line in err if not re.match(r"srun: job \d+ ", line)]


def test_exit_code_is_the_highest_and_failures_are_named(shell: Shell) -> None:
    code, _, err = shell.run("srun", "-n", "4", *sh("exit $((SLURM_PROCID % 2 * 3))"))
    assert code == 3
    assert sorted(without_waits(err)) == [
        "srun: error: n1: task 1: Exited with exit code 3",
        "srun: error: n2: task 3: Exited with exit code 3",
    ]


def test_task_that_a_signal_ended_is_named_and_counts_128(shell: Shell) -> None:
    code, _, err = shell.run("srun", *sh("kill -SEGV $$"))
    assert code == 128 + signal.SIGSEGV
    text = r"srun: error: n[12]: task 0: Segmentation fault( \(core dumped\))?"
    assert re.fullmatch(text, err[-1])


def test_program_that_does_not_exist_gives_the_exit_code_2(shell: Shell) -> None:
    code, _, err = shell.run("srun", "-w", "n1", "no-such-program")
    assert code == 2
    assert sorted(without_waits(err)) == [
        "slurmstepd: error: execve(): no-such-program: No such file or directory",
        "srun: error: n1: task 0: Exited with exit code 2",
    ]


def test_variables_of_a_step_are_those_of_slurm(shell: Shell) -> None:
    names = "SLURM_STEP_ID SLURM_STEP_NUM_TASKS SLURM_STEP_NUM_NODES SLURM_NTASKS SLURM_NODEID"
    script = "".join(f"echo {name}=${name};" for name in names.split())
    _, out, _ = shell.run("srun", "-N", "2", *sh(f"[ $SLURM_PROCID = 1 ] && {{ {script} }}; exit"))
    assert out == [
        "SLURM_STEP_ID=0",
        "SLURM_STEP_NUM_TASKS=2",
        "SLURM_STEP_NUM_NODES=2",
        "SLURM_NTASKS=2",
        "SLURM_NODEID=1",
    ]


def test_input_goes_to_all_tasks_to_one_or_to_none(shell: Shell) -> None:
    text = "".join(f"{number}\n" for number in range(20_000))
    assert shell.run("srun", "-n", "2", "wc", "-l", text=text)[1] == ["20000", "20000"]
    one = shell.run("srun", "-n", "2", "-l", "-i", "1", "wc", "-l", text=text)[1]
    assert sorted(one) == ["0: 0", "1: 20000"]
    assert shell.run("srun", "-i", "none", "wc", "-l", text=text)[1] == ["0"]
    (shell.directory / "in").write_text(text)
    assert shell.run("srun", "-i", "in", "wc", "-l")[1] == ["20000"]


def test_node_whose_tasks_have_ended_does_not_stop_the_input_of_others(shell: Shell) -> None:
    script = "[ $SLURM_NODEID = 1 ] && exec head -c 500000 >/dev/null; exec wc -c"
    code, out, err = shell.run("srun", "-N", "2", *sh(script), text="x" * 5_000_000)
    assert (code, out, err) == (0, ["5000000"], [])


def test_number_that_is_no_task_of_the_step_is_the_name_of_a_file(shell: Shell) -> None:
    (shell.directory / "7").write_text("seven\n")
    assert shell.run("srun", "-n", "2", "-i", "7", "cat") == (0, ["seven", "seven"], [])
    script = sh("echo $SLURM_PROCID; echo e >&2")
    assert shell.run("srun", "-n", "2", "-o", "2", *script) == (0, [], [])
    assert sorted((shell.directory / "2").read_text().split()) == ["0", "1", "e", "e"]
    assert shell.run("srun", "-n", "2", "-o", "1", "-e", "3", *script) == (0, ["1"], [])
    assert (shell.directory / "3").read_text() == "e\ne\n"


def test_input_file_has_the_symbols_of_output_files(shell: Shell) -> None:
    script = (
        "echo here >in-$SLURM_JOB_ID-0; srun -i in-%j-%s cat; srun -i in-%J cat;"
        "srun -i none-%s sh -c 'sleep 600'; echo $?"
    )
    code, out, err = shell.run("salloc", *sh(script))
    job = err[0].split()[-1]
    assert (code, out) == (0, ["here", "1"])
    # The third may wait until the second has ended, and say so.
    assert [line for line in err if line.startswith("srun: error: ")] == [
        f"srun: error: Could not open stdin file: in-{job}.1: No such file or directory",
        "srun: error: Could not open stdin file: none-2: No such file or directory",
    ]


def test_closed_input_is_an_empty_one(shell: Shell) -> None:
    with shell.start("srun", "cat", stdin=None, preexec_fn=lambda: os.close(0)) as process:
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize("words", [("srun", "echo", "lost"), ("sacct",)])
def test_closed_output_is_an_error_as_soon_as_something_is_written(
    shell: Shell, words: tuple[str, ...]
) -> None:
    for command, code in ((words, 1), (("srun", "true"), 0)):
        with shell.start(*command, preexec_fn=lambda: os.close(1)) as process:
            error = f"{command[0]}: error: Bad file descriptor\n" if code else ""
            assert process.communicate(timeout=60) == ("", error)
        assert process.returncode == code


def test_output_goes_to_files_with_symbols(shell: Shell) -> None:
    code, out, err = shell.run("srun", "-n", "2", "-o", "%s-%t.txt", *sh("echo $SLURM_PROCID"))
    assert (code, out, err) == (0, [], [])
    texts = [(shell.directory / f"0-{rank}.txt").read_text() for rank in range(2)]
    assert texts == ["0\n", "1\n"]
    shell.run("srun", "-n", "2", "-l", "-o", "all.txt", *sh("echo $SLURM_PROCID; echo e >&2"))
    lines = (shell.directory / "all.txt").read_text().splitlines()
    assert sorted(lines) == ["0: 0", "0: e", "1: 1", "1: e"]


def test_much_output_comes_whole_and_in_order(shell: Shell) -> None:
    _, out, _ = shell.run("srun", "-n", "2", "-l", "seq", "100000")
    for rank in range(2):
        own = [line.split()[1] for line in out if line.startswith(f"{rank}:")]
        assert own == [str(number) for number in range(1, 100_001)]


def test_output_that_another_process_has_made_non_blocking_comes_whole(shell: Shell) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    command = ("srun", *sh("seq 100000; touch written"))
    with shell.start(*command, stdout=writer) as process, open(reader) as pipe:
        os.close(writer)
        wait_until((shell.directory / "written").exists, "more output than the pipe takes")
        assert pipe.read().split() == [str(number) for number in range(1, 100_001)]
        assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 0


def test_stopped_srun_gets_everything_later(shell: Shell) -> None:
    script = "echo 0; while [ ! -e stopped ]; do sleep 0.05; done; seq 300000; touch written"
    with shell.start("srun", *sh(script)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        os.kill(process.pid, signal.SIGSTOP)
        (shell.directory / "stopped").touch()
        # The task ends all the same: nobody reads its output now.
        wait_until((shell.directory / "written").exists, "the end of the task")
        os.kill(process.pid, signal.SIGCONT)
        out, _ = process.communicate(timeout=60)
    assert out.splitlines() == [str(number) for number in range(1, 300_001)]


def test_first_failure_ends_the_step_if_that_is_wished(shell: Shell) -> None:
    script = "[ $SLURM_PROCID = 0 ] && exit 5; exec sleep 600"
    code, _, err = shell.run("srun", "-n", "2", "-K", *sh(script))
    assert code == 128 + signal.SIGTERM
    assert any(
        re.fullmatch(r"srun: error: n[12]: task 0: Exited with exit code 5", one) for one in err
    )
    assert any(re.fullmatch(r"srun: Terminating StepId=\d+\.0", line) for line in err)


def test_step_ends_some_seconds_after_its_first_task(shell: Shell) -> None:
    script = "[ $SLURM_PROCID = 0 ] || exec sleep 600"
    code, _, err = shell.run("srun", "-n", "2", "-W", "1", *sh(script))
    assert code == 128 + signal.SIGKILL
    assert "srun: First task exited 1s ago" in err


def test_settings_end_a_step_as_the_options_do(shell: Shell, cluster: SmallCluster) -> None:
    script = "[ $SLURM_PROCID = 0 ] || exec sleep 600; exit 5"
    before = cluster.settings.read_text()
    with Controller(cluster.directory) as controller:
        try:
            for line, signalled in (("kill_on_bad_exit = 1", signal.SIGTERM), ("wait_time = 1", 9)):
                cluster.settings.write_text(before.replace("[jobs]", f"[jobs]\n{line}"))
                controller.request("reconfigure")
                assert shell.run("srun", "-n", "2", *sh(script))[0] == 128 + signalled
        finally:
            cluster.settings.write_text(before)
            controller.request("reconfigure")


def test_task_says_to_which_cpus_it_is_bound(shell: Shell) -> None:
    code, _, err = shell.run("srun", "-n", "1", "--cpu-bind=verbose,none", "true")
    assert code == 0
    assert re.fullmatch(r"cpu-bind=MASK - n1, task  0  0 \[\d+\]: mask 0x[0-9a-f]+ set", err[0])
    assert "'nosuch' is no binding to CPUs" in shell.refusal("srun", "--cpu-bind=nosuch", "true")


def test_programs_before_and_after_the_tasks_are_those_of_srun(shell: Shell) -> None:
    for name, script in (("prolog", "echo export X=1"), ("epilog", "echo after > done")):
        (shell.directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (shell.directory / name).chmod(0o700)
    options = ("--task-prolog=prolog", "--task-epilog", "epilog")
    assert shell.run("srun", *options, *sh("echo $X")) == (0, ["1"], [])
    assert (shell.directory / "done").read_text() == "after\n"


@pytest.mark.parametrize("kind", ["pmi2", "pmix"])
def test_pmi_server_is_refused_with_the_way_to_start(shell: Shell, kind: str) -> None:
    assert "start the program with mpirun or mpiexec" in shell.refusal(
        "srun", f"--mpi={kind}", "true"
    )


def test_kinds_of_mpi_are_listed(shell: Shell) -> None:
    assert shell.run("srun", "--mpi=list") == (0, ["MPI plugin types are...", "\tnone"], [])


def test_host_file_and_numbers_name_the_nodes_of_a_step(shell: Shell) -> None:
    (shell.directory / "hosts").write_text("n2\nn1*2\n")
    job = ("salloc", "-Q", "-N", "2", "--ntasks-per-node=2")
    task = "sh -c 'echo $SLURMD_NODENAME' | sort"
    by_file = sh(f"SLURM_HOSTFILE=hosts srun -n 3 -l {task}")
    assert shell.run(*job, *by_file)[1] == ["0: n2", "1: n1", "2: n1"]
    assert shell.run(*job, *sh(f"srun -w [1] -n 1 -l {task}"))[1] == ["0: n2"]


def test_step_with_more_memory_than_its_job_gets_the_sentence_of_slurm(shell: Shell) -> None:
    code, _, err = shell.run("salloc", "-Q", "--mem=10", "srun", "--mem=20", "true")
    assert code == 1
    assert err[-1].endswith(": Memory required by task is not available")


def test_ctrl_c_twice_interrupts_the_tasks(shell: Shell) -> None:
    script = "trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.05; done"
    with shell.start("srun", *sh(script)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "srun: interrupt (one more within 1 sec to abort)\n"
        assert re.fullmatch(r"srun: StepId=\d+\.0 task 0: running\n", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    if "sending Ctrl-C" not in err:
        pytest.skip("more than a second has passed between both")
    assert (process.returncode, out) == (9, "interrupted\n")


def test_signals_are_forwarded(shell: Shell) -> None:
    script = "trap 'echo usr1; exit' USR1; echo ready; while :; do sleep 0.05; done"
    with shell.start("srun", *sh(script)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGUSR1)
        assert process.communicate(timeout=60)[0] == "usr1\n"


def test_terminal_is_that_of_the_program(shell: Shell) -> None:
    master, slave = pty.openpty()
    script = "test -t 0 && test -t 1 && stty -a | head -1; read line; echo got $line"
    with shell.start("srun", "--pty", *sh(script), stdin=slave, stdout=slave, stderr=slave) as one:
        os.close(slave)
        shown = _read_until(master, b"rows")
        os.write(master, b"hello\r")
        shown += _read_until(master, b"got hello")
        assert one.wait(60) == 0
    os.close(master)
    assert b"got hello\r\n" in shown


def test_terminal_may_change_its_size_while_srun_waits(cluster: SmallCluster, shell: Shell) -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(master, (20, 70))
    script = "until [ \"$(stty size)\" = '31 91' ]; do sleep 0.05; done; echo resized"
    with stopped_node(cluster):
        process = shell.start("srun", "--pty", *sh(script), stdin=slave, stdout=slave, stderr=slave)
        wait_until(cluster.busy_jobs, "nodes for the job")
        termios.tcsetwinsize(master, (31, 91))
    os.close(slave)
    _read_until(master, b"resized")
    assert process.wait(60) == 0
    os.close(master)


def _read_until(descriptor: int, text: bytes) -> bytes:
    shown = b""
    while text not in shown or not shown.endswith(b"\n"):
        shown += os.read(descriptor, 4_096)
    return shown


def test_variable_that_export_sets_is_not_that_of_the_job(shell: Shell) -> None:
    words = sh("echo $SLURM_JOB_NAME $SLURM_JOB_NUM_NODES")
    assert shell.run("srun", "--export=ALL,SLURM_JOB_NAME=own", *words) == (0, ["own 1"], [])


def test_job_whose_step_cannot_be_requested_is_cancelled(
    cluster: SmallCluster, shell: Shell
) -> None:
    (shell.directory / "programs").write_bytes(b"0 echo \xff\n")
    code, out, err = shell.run("srun", "-n", "1", "--multi-prog", "programs")
    assert (code, out) == (1, [])
    assert "is not UTF-8" in err[0]
    wait_until(lambda: not cluster.busy_jobs(), "the end of the job")


def test_tasks_may_have_programs_of_their_own(shell: Shell) -> None:
    lines = "# rank program\n0 echo first %t %o\n1,3 echo 'two words' %t %o\n* echo other %t\n"
    (shell.directory / "programs").write_text(lines)
    code, out, _ = shell.run("srun", "-n", "4", "-l", "--multi-prog", "programs")
    assert (code, sorted(out)) == (
        0,
        ["0: first 0 0", "1: two words 1 0", "2: other 2", "3: two words 3 1"],
    )


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (("-N", "2"), "* echo %t\n", ["0", "1"]),
        (("-N", "2"), "0 echo a\n1 echo b\n", ["a", "b"]),
        (("-N", "2", "--ntasks-per-node=2"), "0 echo a\n* echo %t\n", ["1", "2", "3", "a"]),
        ((), "0-1 echo %t\n2 echo c\n", ["0", "1", "c"]),
        (("-w", "n1,n2"), "* echo %t\n", ["0", "1"]),
    ],
)
def test_programs_say_how_many_tasks_there_are_without_a_number(
    shell: Shell, words: tuple[str, ...], text: str, expected: list[str]
) -> None:
    (shell.directory / "programs").write_text(text)
    code, out, _ = shell.run("srun", *words, "--multi-prog", "programs")
    assert (code, sorted(out)) == (0, expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-N", "2"), ["0 n1", "1 n2"]),
        (("-N", "2", "--ntasks-per-node=2"), ["0 n1", "1 n1", "2 n2", "3 n2"]),
        (("-n", "3"), ["0 n1", "1 n1", "2 n2"]),
    ],
)
def test_step_with_programs_has_the_tasks_of_its_job(
    shell: Shell, words: tuple[str, ...], expected: list[str]
) -> None:
    (shell.directory / "programs").write_text("* sh -c 'echo %t $SLURMD_NODENAME'\n")
    code, out, _ = shell.run("salloc", "-Q", *words, "srun", "--multi-prog", "programs")
    assert (code, sorted(out)) == (0, expected)


def test_file_of_programs_without_a_line_for_a_node_is_refused(shell: Shell) -> None:
    (shell.directory / "programs").write_text("0 true\n")
    code, _, err = shell.run("srun", "-N", "2", "--multi-prog", "programs")
    assert code == 1
    assert "no record for task id 1" in "\n".join(err)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0 true\n", "Configuration file programs invalid, no record for task id 1"),
        ("x true\n", "Invalid task range specification (x)"),
        ("0\n", "Line 1 of configuration file programs invalid"),
        ("0-1 true\n1 false\n", "Duplicate record for task 1"),
        ("0-2 true\n", "Invalid task id, 2 >= ntasks"),
        ("0 'true\n", "No closing quotation"),
        (None, "No such file"),
    ],
)
def test_bad_file_of_programs_is_refused(shell: Shell, text: str | None, sentence: str) -> None:
    if text is not None:
        (shell.directory / "programs").write_text(text)
    code, _, err = shell.run("srun", "-n", "2", "--multi-prog", "programs")
    assert code == 1
    assert sentence in "\n".join(err)


# ------------------------------------------------------------------ allocations


def test_srun_allocates_for_a_command_or_a_shell_as_salloc(shell: Shell) -> None:
    script = "srun -n 2 -l sh -c 'echo $SLURMD_NODENAME'; echo $SLURM_JOB_ID; exit 3"
    code, out, err = shell.run("srun", "--allocate", "-N", "2", *sh(script))
    number = out[-1]
    assert (code, sorted(out[:-1])) == (3, ["0: n1", "1: n2"])
    assert err == [
        f"srun: Granted job allocation {number}",
        f"srun: Relinquishing job allocation {number}",
    ]
    code, out, _ = shell.run("srun", "--allocate", "-n", "1", text="srun echo step; exit 4\n")
    assert (code, out) == (4, ["step"])


def test_options_of_steps_have_no_meaning_for_an_allocation(shell: Shell) -> None:
    sentence = "srun: error: --label has no meaning with --allocate"
    assert shell.refusal("srun", "--allocate", "-l", "true") == sentence


def test_job_on_a_full_machine_waits_as_long_as_immediate_says(
    shell: Shell, cluster: SmallCluster
) -> None:
    wait_until(lambda: not cluster.busy_jobs(), "the nodes to be free")
    words = (
        "salloc",
        "-N",
        "2",
        "--exclusive",
        *sh("echo on; until [ -e go ]; do sleep 0.05; done"),
    )
    with shell.start(*words) as full:
        assert full.stdout is not None
        assert full.stdout.readline() == "on\n"
        for name in ("srun", "salloc"):
            for option in ("-I", "-I1", "--immediate=0"):
                code, out, err = shell.run(name, option, "-N", "2", "echo", "never")
                assert (code, out) == (1, [])
                assert err[-1] == (
                    f"{name}: error: Unable to allocate resources: Requested nodes are busy"
                )
        assert len(cluster.busy_jobs()) == 1  # those have been cancelled
        waiting = [
            shell.start("srun", *words, "-N", "2", "echo", "later") for words in (["-I600"], [])
        ]
        for process in waiting:
            assert process.stderr is not None
            assert "queued and waiting" in process.stderr.readline()
        (shell.directory / "go").touch()
        for process in waiting:
            assert process.communicate(timeout=60)[0] == "later\nlater\n"
        full.communicate(timeout=60)


def test_step_that_others_leave_no_core_waits_as_long_as_immediate_says(shell: Shell) -> None:
    script = (
        "srun -n 1 sh -c 'touch one; while [ ! -e go ]; do sleep 0.05; done' &\n"
        "while [ ! -e one ]; do sleep 0.05; done\n"
        "srun -I -n 1 true; code=$?; touch go; wait; exit $code\n"
    )
    code, _, err = shell.run("salloc", "-n", "1", *sh(script))
    assert code == 1
    assert re.fullmatch(
        r"srun: error: Unable to create step for job \d+: Requested nodes are busy", err[-2]
    )


# ------------------------------------------------------------------ within jobs


def test_step_waits_for_the_nodes_that_it_names_of_as_many_as_it_has_tasks(shell: Shell) -> None:
    script = (
        "srun -N 1 -n 1 -w n1 sh -c 'touch one; while [ ! -e done ]; do sleep 0.05; done' &\n"
        "while [ ! -e one ]; do sleep 0.05; done\n"
        "srun -Q -I -n 1 -w n2,n1 printenv SLURMD_NODENAME\n"
        "srun -Q -I -n 1 -w n1,n2 printenv SLURMD_NODENAME\n"
        "srun -Q -I -n 2 -w n1,n2 printenv SLURMD_NODENAME\n"
        "touch done; wait\n"
    )
    _, out, err = shell.run("salloc", "-Q", "-N", "2", "--ntasks-per-node=2", *sh(script))
    assert out == ["n2"]
    assert len([line for line in err if line.endswith("Requested nodes are busy")]) == 2


def test_steps_of_one_job_share_its_cores(shell: Shell) -> None:
    script = (
        "srun -n 1 --exact sh -c 'touch one; while [ ! -e two ]; do sleep 0.05; done' &\n"
        "srun -n 1 --exact sh -c 'touch two; while [ ! -e one ]; do sleep 0.05; done' &\nwait\n"
    )
    assert shell.run("salloc", "-n", "2", *sh(script))[0] == 0


def test_step_whose_output_has_no_reader_ends(shell: Shell) -> None:
    script = "srun yes | head -1; srun echo next"
    code, out, _ = shell.run("salloc", "-n", "1", *sh(script))
    assert (code, out) == (0, ["y", "next"])


def test_step_that_must_wait_says_so_once(shell: Shell) -> None:
    script = (
        "srun -n 1 sh -c 'touch one; while [ ! -e go ]; do sleep 0.05; done' &\n"
        "while [ ! -e one ]; do sleep 0.05; done\n"
        "srun -n 1 echo second 2>err & until grep -q retrying err; do sleep 0.05; done\n"
        "touch go; wait\n"
    )
    code, out, _ = shell.run("salloc", "-n", "1", *sh(script))
    assert (code, out) == (0, ["second"])
    lines = (shell.directory / "err").read_text().splitlines()
    waits = [line for line in lines if "temporarily disabled, retrying" in line]
    assert len(waits) == 1
    assert "(Requested nodes are busy)" in waits[0]


def test_salloc_ends_with_its_command_and_says_so(shell: Shell) -> None:
    code, out, err = shell.run("salloc", "-N", "2", *sh("srun hostname -s >/dev/null; exit 4"))
    assert (code, out) == (4, [])
    number = err[0].split()[-1]
    assert err == [
        f"salloc: Granted job allocation {number}",
        f"salloc: Relinquishing job allocation {number}",
    ]


def test_salloc_without_a_shell_leaves_the_job(shell: Shell, cluster: SmallCluster) -> None:
    code, _, err = shell.run("salloc", "-n", "1", "--no-shell")
    assert code == 0
    number = int(err[0].split()[-1])
    code, out, _ = shell.run("srun", f"--jobid={number}", "echo", "inside")
    assert (code, out) == (0, ["inside"])
    with Controller(cluster.directory) as controller:
        requests.change_jobs(controller, "cancel", [str(number)])
    code, _, err = shell.run("srun", f"--jobid={number}", "true")
    assert code == 1
    assert "Job has already finished" in err[-1]


def test_steps_of_a_batch_script_write_to_its_output(shell: Shell) -> None:
    script = "#!/bin/sh\n#SBATCH -n 2 -o out\necho begin\nsrun -l echo step\necho end\n"
    (shell.directory / "job.sh").write_text(script)
    assert shell.run("sbatch", "--wait", "job.sh")[0] == 0
    lines = (shell.directory / "out").read_text().splitlines()
    assert (lines[0], sorted(lines[1:3]), lines[3]) == ("begin", ["0: step", "1: step"], "end")


def test_waiting_srun_says_so_and_can_be_interrupted(shell: Shell, cluster: SmallCluster) -> None:
    with shell.start("salloc", "-N", "2", "-n", "4", *sh("sleep 600")) as first:
        assert first.stderr is not None
        assert first.stderr.readline().startswith("salloc: Granted")
        with shell.start("srun", "true") as waiting:
            assert waiting.stderr is not None
            line = waiting.stderr.readline()
            assert re.fullmatch(r"srun: job \d+ queued and waiting for resources\n", line)
            waiting.send_signal(signal.SIGINT)
            assert "has been revoked" in waiting.communicate(timeout=60)[1]
        assert waiting.returncode == 1
        first.send_signal(signal.SIGTERM)
    with Controller(cluster.directory) as controller:
        requests.change_jobs(controller, "cancel", [], filter={"states": ["PENDING", "RUNNING"]})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("srun",), "No command given to execute."),
        (("srun", "-n", "99", "true"), "Requested node configuration is not available"),
        (("srun", "-n", "0", "true"), "invalid"),
        (("srun", "--jobid=999", "true"), "Invalid job id specified"),
        (("srun", "-i", "missing", "true"), "Could not open stdin file"),
        (("srun", "-i", "/tmp", "true"), "Could not open stdin file: /tmp: Is a directory"),
    ],
)
def test_bad_request_is_refused_in_a_sentence(
    shell: Shell, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence.lower() in shell.refusal(*words).lower()


def test_step_goes_on_while_controller_and_node_daemon_are_killed(
    shell: Shell, cluster: SmallCluster
) -> None:
    script = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 6"
    with shell.start("srun", *sh(script)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n", process.communicate()
        cluster.kill_node()
        cluster.kill_controller()
        (shell.directory / "go").touch()
        assert process.stdout.readline() == "two\n"
        cluster.start_node()
        cluster.start_controller()
        assert process.wait(60) == 6
        process.communicate()


def test_step_waits_until_its_node_is_connected(shell: Shell, cluster: SmallCluster) -> None:
    _, _, err = shell.run("salloc", "-n", "1", "--no-shell")
    job = err[-1].split()[-1]
    cluster.kill_node()
    wait_until(lambda: cluster.ask("connected") == [], "the connections to be lost")
    refusal = shell.refusal("srun", "-I", f"--jobid={job}", "true")
    reason = r"node n[12] is not connected"
    assert re.fullmatch(f"srun: error: Unable to create step for job {job}: {reason}", refusal)
    with shell.start("srun", f"--jobid={job}", "echo", "on") as waiting:
        assert waiting.stderr is not None
        line = f"srun: Job {job} step creation temporarily disabled, retrying \\({reason}\\)\n"
        assert re.fullmatch(line, waiting.stderr.readline())
        cluster.start_node()
        assert waiting.communicate(timeout=60)[0] == "on\n"
    with Controller(cluster.directory) as controller:
        requests.change_jobs(controller, "cancel", [job])
