"""Process of a task, from its fork to the execution of its script or program."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import struct
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from fairbank.wlm.stepd.signals import set_blocked, set_default_signals
from fairbank.wlm.stepd.step import ENVIRONMENT, Step, StepTask
from fairbank.wlm.stepd.streams import StreamEnds
from fairbank.wlm.stepd.task_programs import run_prologs

MARK = "FAIRBANK_STEP"
"""Variable in the environment of all processes of a step: its directory."""
_FALLBACK_DIRECTORY = "/tmp"  # noqa: S108 - as Slurm does
JOB_FAULT_CODE, _NODE_FAULT_CODE = 1, 2
"""Exit codes of a task that does not execute its script, by whose fault."""
_FAILURE = 3
"""Descriptor of the pipe for failures, which closes when the script is executed, or when its
prologs run."""
_LOWEST = 10
"""Lowest number of a descriptor that must not be closed by those that a task gets."""


class TaskFailure(Exception):
    """Failure that ends a task before its script is executed, by fault of the job."""


def open_streams(step: Step, local: int, task: StepTask) -> tuple[StreamEnds, StreamEnds]:
    """Return the ends of the streams of a task: those of its daemon, and its own.

    Args:
        step: its step.
        local: its number on this node.
        task: the task, with all that it has.
    """
    if step.terminal and local == 0:
        master, slave = os.openpty()
        size = struct.pack("HHHH", *step.terminal, 0, 0)
        fcntl.ioctl(master, termios.TIOCSWINSZ, size)
        daemon = StreamEnds(os.dup(master), master, is_terminal=True)
        return daemon, StreamEnds(slave, slave, slave, is_terminal=True)
    daemon, own = StreamEnds(), StreamEnds()
    if not task.input and step.input_rank in (None, task.rank):
        end, our_end = os.pipe()
        daemon, own = daemon._replace(stdin=our_end), own._replace(stdin=end)
    if not task.output:
        our_end, end = os.pipe()
        daemon, own = daemon._replace(stdout=our_end), own._replace(stdout=end)
        if not task.error:
            our_end, end = os.pipe()
            daemon, own = daemon._replace(stderr=our_end), own._replace(stderr=end)
    return daemon, own


def run_task(
    step: Step, local: int, task: StepTask, ends: StreamEnds, directory: str, go: int, failure: int
) -> NoReturn:
    """Execute a task of a step in this process, which was forked for it.

    Args:
        step: its step.
        local: its number on this node.
        task: the task, with all that it has.
        ends: its ends of its streams.
        directory: directory of the step.
        go: reading end of a pipe. The task waits for a byte, and ends without one.
        failure: writing end of a pipe for the reason why nothing was executed.
    """
    code, prefix = _NODE_FAULT_CODE, ""
    try:
        # Above the numbers that the task's own files get.
        stdin, stdout, stderr = map(_above, ends[:3])
        failure, go = (fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, _LOWEST) for one in (failure, go))
        ends = StreamEnds(stdin, stdout, stderr, ends.is_terminal)
        os.dup2(failure, _FAILURE, inheritable=False)
        for path in filter(None, (step.group, step.devices, step.memory_group)):
            _enter_group(path)
        # What takes time and changes nothing for others, while the daemon stores the start.
        os.setsid()
        set_default_signals()
        if os.read(go, 1):
            _prepare(step, task, ends)
            environment = read_environment(directory, local, task)
            if step.prologs:
                # The pipe closes: the step has begun, and can be signalled and ended. The error
                # output gets the failures from now on.
                os.dup2(2, _FAILURE, inheritable=False)
                prefix = "slurmstepd: error: "
                prolog_code = run_prologs(step.prologs, environment)
                if prolog_code:
                    os._exit(prolog_code)
            _restrict(step, task.cpus)  # last: the limits must not stop this process
            if step.shows_cpus:
                _show_cpus(environment, local, task.rank)
            if task.notice:
                os.write(2, f"{task.notice}\n".encode())
            _execute(task.arguments, environment)
    except TaskFailure as error:
        os.write(_FAILURE, f"{error}\n".encode(errors="replace"))
        code = JOB_FAULT_CODE
    except BaseException as error:  # noqa: BLE001 - without a text, it would count as started
        text = f"{prefix}cannot prepare the script: {error}\n"
        os.write(_FAILURE, text.encode(errors="replace"))
    finally:
        os._exit(code)


def _above(descriptor: int | None) -> int | None:
    return None if descriptor is None else fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _LOWEST)


def _enter_group(path: str) -> None:
    """Move this process into a control group."""
    try:
        # A thread, the only one: for a process, the kernel waits 10 ms for all others.
        _write_zero(f"{path}/tasks")  # 0 stands for the one that writes
    except FileNotFoundError:  # version 2 moves processes only
        _write_zero(f"{path}/cgroup.procs")


def _write_zero(path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, b"0")
    finally:
        os.close(file)


def _prepare(step: Step, task: StepTask, ends: StreamEnds) -> None:
    """Give the process the terminal, directory and files that its script inherits, and signals."""
    if ends.is_terminal and ends.stdin is not None:
        fcntl.ioctl(ends.stdin, termios.TIOCSCTTY, 0)
    set_blocked(())
    os.umask(step.umask)
    try:
        os.chdir(step.directory)
        complaint = ""
    except OSError as error:
        os.chdir(_FALLBACK_DIRECTORY)
        complaint = (
            f"fairbank: error: cannot enter the directory {step.directory}: {error.strerror}; "
            f"the job runs in {_FALLBACK_DIRECTORY}\n"
        )
        task = _with_fallback_files(task, step.directory)
    for number, file in enumerate(_open_files(step, task, ends)):
        os.dup2(file, number)
    os.closerange(_FAILURE + 1, os.sysconf("SC_OPEN_MAX"))
    if complaint:
        os.write(2, complaint.encode(errors="surrogateescape"))


def _with_fallback_files(task: StepTask, directory: str) -> StepTask:
    """Return the task with its files in the fallback directory instead of its own."""
    own = f"{directory.rstrip('/')}/"

    def moved(path: str) -> str:
        below = path.removeprefix(own)
        return path if below == path else f"{_FALLBACK_DIRECTORY}/{below}"

    return task._replace(
        input=moved(task.input), output=moved(task.output), error=moved(task.error)
    )


def _restrict(step: Step, cpus: Sequence[int]) -> None:
    """Set the CPUs and the limits of the process."""
    if cpus:
        os.sched_setaffinity(0, cpus)
    with suppress(OSError):
        _write_zero("/proc/self/oom_score_adj")
    for name, soft in step.limits.items():
        _set_limit(getattr(resource, f"RLIMIT_{name}"), soft)


def _show_cpus(environment: Mapping[bytes, bytes], local: int, rank: int) -> None:
    """Write to which CPUs this process is bound, as slurmstepd does."""
    mask = sum(1 << cpu for cpu in os.sched_getaffinity(0))
    node = os.fsdecode(environment.get(b"SLURMD_NODENAME", b""))
    line = f"cpu-bind=MASK - {node}, task {rank:2} {local:2} [{os.getpid()}]: mask 0x{mask:x} set\n"
    os.write(2, line.encode(errors="surrogateescape"))


def shared_files(tasks: Sequence[StepTask]) -> list[str]:
    """Return the files that several tasks write."""
    seen: set[str] = set()
    shared: set[str] = set()
    for task in tasks:
        paths = {task.output, task.error} - {""}
        shared |= paths & seen
        seen |= paths
    return sorted(shared)


def empty_files(paths: Sequence[str]) -> None:
    """Empty files that exist. Why one cannot be opened, a task says."""
    for path in paths:
        with suppress(OSError):
            if os.path.isfile(path):
                os.close(os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC))


def _open_files(step: Step, task: StepTask, ends: StreamEnds) -> tuple[int, int, int]:
    """Return the descriptors of standard input, output and error output."""
    stdin, stdout, stderr = ends[:3]
    if stdin is None:  # no task but one gets the input of srun
        stdin = _open(task.input or os.devnull, os.O_RDONLY, "input")
    if stdout is None:
        stdout = _open_output(step, task.output, "output")
    if stderr is None:
        # Opened once, so that both write at the same place.
        is_same = task.error in ("", task.output)
        stderr = stdout if is_same else _open_output(step, task.error, "error output")
    return stdin, stdout, stderr


def _open_output(step: Step, path: str, kind: str) -> int:
    is_kept = step.append or path in step.shared
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if is_kept else os.O_TRUNC)
    return _open(path, flags, kind)


def _open(path: str, flags: int, kind: str) -> int:
    # O_NOFOLLOW: another user may put a link into a directory that both can write.
    # O_NONBLOCK: the opening of a FIFO would wait for its other end.
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        if flags & os.O_CREAT:
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        file = os.open(path, flags, 0o666)
    except OSError as error:
        reason = {
            errno.ELOOP: "it is a symbolic link; name the file itself",
            errno.ENXIO: "it is a FIFO without a reader, or a socket",
        }.get(error.errno or 0, error.strerror)
        raise TaskFailure(f"cannot open the {kind} {path}: {reason}") from error
    os.set_blocking(file, True)
    return file


def _set_limit(number: int, soft: int) -> None:
    """Set a soft limit, or the hard limit if that is lower."""
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY and (soft == resource.RLIM_INFINITY or soft > hard):
        soft = hard
    resource.setrlimit(number, (soft, hard))


def read_environment(step_directory: str, local: int, task: StepTask) -> dict[bytes, bytes]:
    """Return the environment of a task, with its numbers, and the mark of the step."""
    with open(os.path.join(step_directory, ENVIRONMENT), "rb") as file:
        entries = [entry.partition(b"=") for entry in file.read().split(b"\0")]
    environment = {name: value for name, _, value in entries if name}
    environment[MARK.encode()] = os.fsencode(step_directory)
    environment[b"SLURM_TASK_PID"] = b"%d" % os.getpid()
    environment[b"SLURM_LOCALID"], environment[b"SLURM_PROCID"] = b"%d" % local, b"%d" % task.rank
    for name, _, value in (variable.partition("=") for variable in task.variables):
        environment[os.fsencode(name)] = os.fsencode(value)
    return environment


def _execute(arguments: Sequence[str], environment: dict[bytes, bytes]) -> NoReturn:
    """Execute the script. Without success, end as slurmstepd does: with a line and the error."""
    try:
        os.execve(arguments[0], [*arguments], environment)  # noqa: S606
    except OSError as error:
        what = arguments[0]
        if error.errno == errno.ENOENT:
            with suppress(OSError), open(what, errors="replace") as script:
                what = f"bad interpreter({script.readline().removeprefix('#!').strip()})"
        hint = " (its file system may be mounted noexec)" if _may_be_noexec(what, error) else ""
        line = f"slurmstepd: error: execve(): {what}: {error.strerror}{hint}\n"
        os.write(2, line.encode(errors="surrogateescape"))
        os._exit(error.errno or JOB_FAULT_CODE)


def _may_be_noexec(path: str, error: OSError) -> bool:
    """Return True if only the file system can have forbidden to execute a file."""
    if error.errno != errno.EACCES or not os.path.isfile(path):
        return False
    return os.stat(path).st_mode & 0o111 != 0
