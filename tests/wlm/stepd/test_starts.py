"""Starts of steps: files, directory, environment, and what a script inherits."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairbank.wlm.stepd.step import NO_START_STATUS, STARTED, StepTask, read_start
from tests.support.conditions import wait_until
from tests.support.small_disk import fill, small_disk
from tests.wlm.stepd.conftest import StartStep
from tests.wlm.stepd.steps import ENVIRONMENT, StartedLauncher, StartedStep

READ_ONLY = "/proc/sys/kernel/ostype"  # root may not open it for writing either


def test_output_and_errors_go_to_their_files(start_step: StartStep, tmp_path: Path) -> None:
    step = start_step("cat\necho out\necho err >&2", error=str(tmp_path / "err"), input=__file__)
    assert step.wait().status == 0
    assert step.output.read_text() == Path(__file__).read_text() + "out\n"
    assert (tmp_path / "err").read_text() == "err\n"


def test_errors_go_to_the_output_unless_they_have_a_file(start_step: StartStep) -> None:
    step = start_step("echo 1\necho 2 >&2\necho 3")
    step.wait()
    assert step.lines() == ["1", "2", "3"]


@pytest.mark.parametrize("append", [False, True])
def test_output_is_truncated_unless_it_is_appended_to(
    start_step: StartStep, tmp_path: Path, append: bool
) -> None:
    output = tmp_path / "output"
    output.write_text("before\n")
    start_step("echo after", output=str(output), append=append).wait()
    assert output.read_text() == "before\n" * append + "after\n"


@pytest.mark.parametrize("option", ["output", "error", "input"])
def test_directory_is_no_file(start_step: StartStep, tmp_path: Path, option: str) -> None:
    if option == "input":
        end = start_step("cat", input=str(tmp_path)).wait()
        assert end.status is not None  # it can be opened, and `cat` fails
        assert os.waitstatus_to_exitcode(end.status) == 1
        return
    end = start_step("echo never", **{option: str(tmp_path)}).wait()
    name = "error output" if option == "error" else "output"
    assert end.failure == f"cannot open the {name} {tmp_path}: Is a directory"
    assert end.status == NO_START_STATUS


def test_running_tasks_are_listed_from_a_number_on(start_step: StartStep) -> None:
    ranks = [StepTask(2), StepTask(5), StepTask(7)]
    script = "[ $SLURM_PROCID = 5 ] && exit\nexec sleep 600"
    step = start_step(script, input="", output="", tasks=ranks)

    def listed(first: int) -> list[list[int]]:
        return [task[:2] for task in step.request({"kind": "tasks", "first": first})["tasks"]]

    wait_until(lambda: listed(0) == [[0, 2], [2, 7]], "the end of one task")
    assert (listed(1), listed(3)) == ([[2, 7]], [])


def test_missing_input_is_named(start_step: StartStep, tmp_path: Path) -> None:
    end = start_step("echo never", input=str(tmp_path / "none")).wait()
    assert end.failure == f"cannot open the input {tmp_path}/none: No such file or directory"


def test_link_as_output_is_refused(start_step: StartStep, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("kept")
    link.symlink_to(target)
    end = start_step("echo never", output=str(link)).wait()
    assert end.failure.endswith("it is a symbolic link; name the file itself")
    assert target.read_text() == "kept"


def test_fifo_without_reader_is_refused_and_with_one_is_written(
    start_step: StartStep, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    end = start_step("echo never", output=str(fifo)).wait()
    assert end.failure.endswith("it is a FIFO without a reader, or a socket")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    assert start_step("echo hello", output=str(fifo)).wait().status == 0
    assert os.read(reader, 100) == b"hello\n"
    os.close(reader)


def test_file_that_may_not_be_written_is_named(start_step: StartStep) -> None:
    end = start_step("echo never", output=READ_ONLY).wait()
    assert end.failure == f"cannot open the output {READ_ONLY}: Permission denied"


def test_full_disk_is_the_error_of_the_script(start_step: StartStep, tmp_path: Path) -> None:
    error = tmp_path / "err"
    end = start_step("echo lost\nexit $?", output="/dev/full", error=str(error)).wait()
    assert end.status is not None
    assert os.waitstatus_to_exitcode(end.status) == 1
    assert error.read_text() != ""


def test_end_is_stored_on_a_disk_that_is_full_by_then(
    launcher: StartedLauncher, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", "256k") as disk:
        go = tmp_path / "go"
        os.mkfifo(go)
        step = StartedStep(launcher, disk / "step", f"read line < {go}", output=os.devnull)
        wait_until((step.directory / "started").exists, "the start")
        fill(disk)
        go.write_text("now\n")
        assert step.wait().status == 0


def test_missing_directory_is_reported_and_replaced_by_tmp(
    start_step: StartStep, tmp_path: Path
) -> None:
    step = start_step("pwd", directory=str(tmp_path / "gone"))
    assert step.wait().status == 0
    complaint, directory = step.lines()
    assert complaint == (
        f"fairbank: error: cannot enter the directory {tmp_path}/gone: No such file or directory; "
        "the job runs in /tmp"
    )
    assert directory == "/tmp"


def test_files_below_a_missing_directory_are_in_tmp(start_step: StartStep, tmp_path: Path) -> None:
    name = f"{tmp_path.name}-{os.getpid()}.out"
    output = Path("/tmp") / name
    step = start_step("pwd", directory=str(tmp_path / "gone"), output=str(tmp_path / "gone" / name))
    try:
        assert step.wait().status == 0
        assert output.read_text().endswith("the job runs in /tmp\n/tmp\n")
    finally:
        output.unlink(missing_ok=True)


def test_directory_on_a_disk_mounted_noexec_is_named(
    launcher: StartedLauncher, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", "256k") as disk:
        subprocess.run(["mount", "-o", "remount,noexec", str(disk)], check=True)
        step = StartedStep(launcher, disk / "step", "echo never", output=str(tmp_path / "out"))
        assert step.wait().status == errno.EACCES << 8
    hint = "Permission denied (its file system may be mounted noexec)\n"
    assert (tmp_path / "out").read_text().endswith(hint)


@pytest.mark.parametrize(
    ("script", "number", "what"),
    [
        (b"#!/bin/sh\r\necho never\r\n", errno.ENOENT, "bad interpreter(/bin/sh): No such file"),
        (b"#!/no/such -e\n", errno.ENOENT, "bad interpreter(/no/such -e): No such file"),
        (b"echo never\n", errno.ENOEXEC, "script: Exec format error"),
        (b"", errno.ENOEXEC, "script: Exec format error"),
        (b"\x7fELF\x02\x01", errno.ENOEXEC, "script: Exec format error"),
        (b"#!/tmp\n", errno.EACCES, "script: Permission denied"),
    ],
    ids=["crlf", "missing", "no-interpreter", "empty", "binary", "directory"],
)
def test_script_that_cannot_be_executed_ends_with_the_error_as_in_slurm(
    start_step: StartStep, script: bytes, number: int, what: str
) -> None:
    step = start_step(script)
    assert step.wait().status == number << 8
    line = step.lines()[0]
    assert line.startswith("slurmstepd: error: execve(): ")
    assert what in line


def test_environment_is_that_of_the_caller(start_step: StartStep) -> None:
    names = {b"WITH_NEWLINE": b"a\nb", b"NOT_UTF8": b"\xff", b"EMPTY": b"", b"EQUALS": b"=a=b="}
    # Without a shell, which would add PWD.
    step = start_step(b"#!/usr/bin/env -S cat /proc/self/environ\n", environment=names)
    step.wait()
    text = step.output.read_bytes().partition(b"#!")[0]  # `cat` shows the script, too
    entries = dict(entry.split(b"=", 1) for entry in text.split(b"\0") if entry)
    assert int(entries.pop(b"SLURM_TASK_PID")) > 0
    assert entries.pop(b"FAIRBANK_STEP") == os.fsencode(step.directory)
    of_task = {b"SLURM_LOCALID": b"0", b"SLURM_PROCID": b"0"}
    assert entries == ENVIRONMENT | names | of_task


def test_100_000_variables_reach_the_script(start_step: StartStep) -> None:
    many = {b"V%d" % number: b"" for number in range(100_000)}
    script = f"#!{sys.executable} -I\nimport os\nprint(len(os.environ))\n"
    step = start_step(script.encode(), environment=many)
    assert step.wait().status == 0
    assert int(step.lines()[0]) >= 100_000


def test_environment_beyond_the_system_limit_is_named(start_step: StartStep) -> None:
    step = start_step("echo never", environment={b"LONG": b"x" * 131_072})
    assert step.wait().status == errno.E2BIG << 8
    assert step.lines()[0].endswith("Argument list too long")


def test_nothing_of_the_daemons_is_inherited(tmp_path: Path) -> None:
    """Signals, mask, umask and descriptors of the process that starts the launcher."""

    def spoil() -> None:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])
        os.umask(0o077)

    leaked = os.open("/dev/zero", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    launcher = StartedLauncher(spoil)
    status = "grep -E 'Sig(Blk|Ign)|Umask' /proc/self/status"
    script = f"{status}\nls /proc/self/fd\nps -o sid= -p $$\necho $$"
    step = StartedStep(launcher, tmp_path / "step", script, umask=0o027)
    assert step.wait().status == 0
    lines = step.lines()
    kept = dict(line.split() for line in lines[:3])
    assert (kept["Umask:"], int(kept["SigBlk:"], 16)) == ("0027", 0)
    # 32 and 33 belong to the C library: what make starts ignores 32, and nobody can change it.
    of_library = 1 << 31 | 1 << 32
    assert int(kept["SigIgn:"], 16) & ~of_library == 0
    assert lines[3:-2] == ["0", "1", "2", "3"]  # 3 is the directory that `ls` reads
    assert lines[-2].strip() == lines[-1]  # the script leads a session
    assert step.output.stat().st_mode & 0o777 == 0o640
    launcher.close()
    os.close(leaked)


def test_limits_and_cpus_are_set(start_step: StartStep) -> None:
    cpu = max(os.sched_getaffinity(0))
    step = start_step(
        "ulimit -Sn; ulimit -Hn; ulimit -Sc; grep Cpus_allowed_list /proc/self/status",
        limits={"NOFILE": 100, "CORE": -1},
        cpus=[cpu],
    )
    assert step.wait().status == 0
    soft, hard, core, allowed = step.lines()
    core_hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    assert (soft, hard) == ("100", str(resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    assert core == ("unlimited" if core_hard == resource.RLIM_INFINITY else str(core_hard // 512))
    assert allowed.split() == ["Cpus_allowed_list:", str(cpu)]


def test_limit_of_the_job_does_not_stop_its_start(start_step: StartStep) -> None:
    # Four files are open: the three of the job, and the pipe for failures.
    end = start_step(b"#!/bin/true\n", limits={"NOFILE": 4}).wait()
    assert (end.status, end.failure) == (0, "")


def test_unknown_limit_is_a_failure_and_not_ignored(start_step: StartStep) -> None:
    end = start_step("echo never", limits={"BEER": 1}).wait()
    assert end.failure.startswith("cannot prepare the script:")
    assert end.status is None


@pytest.mark.parametrize("files", [["cgroup.procs"], ["cgroup.procs", "tasks"]])
def test_group_is_entered_as_a_thread_where_the_kernel_has_groups_of_threads(
    start_step: StartStep, tmp_path: Path, files: list[str]
) -> None:
    (group := tmp_path / "group").mkdir()
    for name in files:
        (group / name).touch()
    start_step("true", group=str(group)).wait()
    assert [name for name in files if (group / name).read_text() == "0"] == files[-1:]


def test_group_that_is_missing_is_a_failure_of_all_tasks(start_step: StartStep) -> None:
    tasks = [StepTask(0), StepTask(1)]
    end = start_step("echo never", group="/nonexistent", tasks=tasks).wait()
    assert end.failure.startswith("cannot prepare the script:")
    assert end.status is None


def test_directory_that_does_not_exist_is_refused_by_the_launcher(
    launcher: StartedLauncher, tmp_path: Path
) -> None:
    answer = launcher.start(tmp_path / "none")
    assert answer == f"cannot start a step daemon in {tmp_path}/none: No such file or directory"


def test_long_directory_has_a_socket(launcher: StartedLauncher, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 200)
    deep.mkdir()
    step = StartedStep(launcher, deep / "step", "exec sleep 600")
    step.end("cancelled")
    assert step.wait().reason == "cancelled"


def test_file_of_a_start_that_a_crash_of_the_host_left_empty_is_none(tmp_path: Path) -> None:
    (tmp_path / STARTED).touch()
    assert read_start(str(tmp_path)) is None
