"""Step, as the node daemon describes it, and the files in its directory.

Each step has a directory with the mode 0700. The node daemon writes the files `step` and
`environment` there before it asks for the step. The launcher creates the socket, and the step
daemon writes `started` and `ended`. They must outlive its processes, not a crash of the host.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

STEP, ENVIRONMENT, SOCKET = "step", "environment", "socket"
STARTED, ENDED, LOG = "started", "ended", "stepd.log"
_SUFFIX = ".new"
_END_BYTES = 4_096
NO_START_STATUS = 53
"""Status of a script that was not executed because of its job: 0:53, as in Slurm."""
TIME_LIMIT = "time limit"
"""Reason of a step that its time limit ended."""
FAILURE_MAX = 1_000
"""Characters of a failure. The rest of a record of the end is short, so that it fits its file."""


class StepTask(NamedTuple):
    """Task of a step: its rank, and what it has in place of what its step has; empty: nothing.

    `variables` are NAME=value. `notice` is a line that it writes to its errors before it begins.
    """

    rank: int
    arguments: Sequence[str] = ()
    cpus: Sequence[int] = ()
    input: str = ""
    output: str = ""
    error: str = ""
    variables: Sequence[str] = ()
    notice: str = ""


class Step(NamedTuple):
    """Step to run. All paths are absolute, and file patterns are expanded.

    `input` and `output` are empty if the step daemon has the stream, for srun. `error` is empty if
    errors go to the file of the output, or are a stream beside it. `append` keeps what the files
    have. `limits` are soft limits by their names in `resource`, such as NOFILE; -1: none. `cpus`
    are the CPUs to which the processes are bound; none: all that the launcher has. `seconds` are
    left until the time limit; None: there is no limit. `group` is the directory of a control group
    for the tasks; empty: none. `devices` is another one, which has no access to the GPUs of others.
    `memory_group` is one in which the kernel limits memory. `title` names the job and the node in
    the line that says that the job is ended; empty: no line. `tasks` are those of this node; none:
    one, with the rank 0. `input_rank` is the only task that gets the input of srun; None: all.
    `terminal` are the rows and columns of the terminal of the first task; none: it has no terminal.
    `memory` is the limit of its job on this node in MiB, which the node daemon watches; 0: none.
    `is_silent`: another node writes the line that the step is ended. `shows_cpus`: each task writes
    to its errors to which CPUs it is bound. `prologs` and `epilogs` are programs that run before
    and after each task. `gpus` are those of the step by their numbers on the node. `shared` are
    files that several tasks write: the step daemon empties them, since no task may empty what
    another has written.
    """

    arguments: Sequence[str]
    directory: str
    input: str = ""
    output: str = ""
    error: str = ""
    append: bool = False
    umask: int = 0o022
    limits: Mapping[str, int] = {}
    cpus: Sequence[int] = ()
    seconds: float | None = None
    kill_wait: float = 30.0
    group: str = ""
    devices: str = ""
    memory_group: str = ""
    title: str = ""
    tasks: Sequence[StepTask] = ()
    input_rank: int | None = None
    terminal: Sequence[int] = ()
    memory: int = 0
    is_silent: bool = False
    shows_cpus: bool = False
    gpus: Sequence[int] = ()
    prologs: Sequence[str] = ()
    epilogs: Sequence[str] = ()
    shared: Sequence[str] = ()

    @property
    def step_id(self) -> str:
        """Its name in messages, as Slurm writes it."""
        kind, number, *_ = self.title.split() or ("", "")
        return f"StepId={number}" if kind == "STEP" else f"StepId={number}.batch"

    @property
    def all_tasks(self) -> list[StepTask]:
        """Tasks of this node, each with all that it has."""
        return [
            StepTask(
                task.rank,
                task.arguments or self.arguments,
                task.cpus or self.cpus,
                task.input or self.input,
                task.output or self.output,
                task.error or self.error,
                task.variables,
                task.notice,
            )
            for task in self.tasks or [StepTask(0)]
        ]


class StepStart(NamedTuple):
    """Identity of a step daemon and of the process of its first task.

    A process id alone is no identity, because numbers are used again. The start times are in clock
    ticks after the boot.
    """

    boot_id: str
    daemon: int
    daemon_start: int
    script: int
    script_start: int


_FORBIDDEN = StepStart("", 0, 0, 0, 0)


class StepEnd(NamedTuple):
    """End of a step.

    `status` is that of wait(2). If the script was not executed, `failure` says why, and the status
    is None, or NO_START_STATUS if the job is at fault. The reason is that of the request to end the
    step; empty: the script ended by itself. `ended` is in seconds since 1970. The largest resident
    memory is that of one process.
    """

    status: int | None
    failure: str
    reason: str
    ended: float
    elapsed_seconds: float
    cpu_seconds: float
    resident_max_kib: int


def write_step(directory: str, step: Step, environment: Mapping[bytes, bytes]) -> None:
    """Write the files that describe a step. Raises OSError."""
    with open(os.path.join(directory, STEP), "w", encoding="utf-8") as file:
        json.dump(step._asdict(), file)
    # Not as JSON: only the script's process reads it, so that the step daemon stays small.
    with open(os.path.join(directory, ENVIRONMENT), "wb") as file:
        file.writelines(b"%b=%b\0" % item for item in environment.items())


def read_step(directory: str) -> Step:
    """Return the step of a directory. Raises OSError."""
    fields = _read(directory, STEP)
    return Step(**fields | {"tasks": [StepTask(*task) for task in fields["tasks"]]})


def read_start(directory: str) -> StepStart | None:
    """Return the identity of the step daemon; None if it has not started the script."""
    try:
        start = StepStart(**_read(directory, STARTED))
    except (FileNotFoundError, ValueError):  # a crash of the host may leave it empty
        return None
    return None if start == _FORBIDDEN else start


def read_end(directory: str) -> StepEnd | None:
    """Return the end of the step; None if it has not ended."""
    try:
        return StepEnd(**_read(directory, ENDED))
    except FileNotFoundError:
        return None


def claim_start(directory: str, start: StepStart) -> bool:
    """Store the start of a step. Return False if it was stored before: no step starts twice."""
    temporary = os.path.join(directory, f"{STARTED}.{os.getpid()}")
    _write(temporary, json.dumps(start._asdict()).encode())
    try:
        os.link(temporary, os.path.join(directory, STARTED))
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def forbid_start(directory: str) -> bool:
    """Make sure that a step starts never. Return False if it has started.

    Raises:
        OSError: it has not started, and that could not be stored.
    """
    if read_start(directory) is not None:
        return False  # known also on a full disk
    return claim_start(directory, _FORBIDDEN) or read_start(directory) is None


def reserve_end(directory: str) -> None:
    """Allocate the file of the end, so that it can be written on a disk that is full by then."""
    file = _open(os.path.join(directory, ENDED + _SUFFIX))
    try:
        os.posix_fallocate(file, 0, _END_BYTES)
    finally:
        os.close(file)


def store_end(directory: str, end: StepEnd) -> None:
    """Store the end of a step, completely or not at all. Raises OSError."""
    path = os.path.join(directory, ENDED)
    _write(path + _SUFFIX, json.dumps(end._asdict()).encode().ljust(_END_BYTES))
    os.rename(path + _SUFFIX, path)


@contextmanager
def socket_path(directory: str) -> Iterator[str]:
    """Yield a short path to the socket of a step; the kernel takes only 107 bytes."""
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET}"
    finally:
        os.close(folder)


def _read(directory: str, name: str) -> dict[str, Any]:
    with open(os.path.join(directory, name), encoding="utf-8") as file:
        fields: dict[str, Any] = json.load(file)
    return fields


def _open(path: str) -> int:
    # Without O_TRUNC, which would free the blocks of a file that was allocated before.
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _write(path: str, content: bytes) -> None:
    file = _open(path)
    try:
        os.write(file, content)
    finally:
        os.close(file)
