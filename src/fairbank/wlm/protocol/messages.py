"""Messages between controller and node daemon, in MessagePack.

The node daemon is the server: it listens at the socket of each of its nodes. Both sides send Hello
first. The controller then sends requests, and each gets one answer with the number of the request:
what the request's class says, or an ErrorMessage. The node also sends a RunStatus with the number 0
for each change of a run. A controller that was away gets the same from a Registration, so that no
change is lost. The node forgets a run when the controller has stored its end and sends ForgetRun.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import msgspec

from fairbank.cluster.job import Run
from fairbank.core.errors import FairbankError
from fairbank.wlm.protocol.frames import MESSAGE, VERSION, Frame, FrameError, encode_frame

Role = Literal["controller", "node", "command"]
RunState = Literal["prolog", "starting", "running", "epilog", "finished"]
EndCause = Literal[
    "exit", "request", "time_limit", "prolog", "launch", "step_daemon_killed", "node_failure"
]
NOTICE_MAX = 1_000
TIME_LIMIT = "time limit"
"""Reason of an EndJob that sets a time limit."""
ENDED_BY_CONTROLLER = "ended by the controller"
"""Reason of an EndJob or EndStep for a run or step of which no end was decided."""
# The bounds also refuse times that are no numbers or infinite.
Seconds = Annotated[float, msgspec.Meta(ge=0, le=10**9)]
SignalTarget = Literal["all", "script", "steps"]
GpuNumbers = tuple[Annotated[int, msgspec.Meta(ge=0)], ...]
SIGKILL, SIGTERM, SIGCONT = 9, 15, 18
"""Numbers of signals on Linux, for modules that do no input or output."""
SignalNumber = Annotated[int, msgspec.Meta(ge=1, le=64)]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Message. Its types have no fields of any content, so that no body can be nested deeply."""


class Hello(Message, frozen=True, kw_only=True):
    """Introduction of a side: the versions that it speaks, and the name of the node or program."""

    versions: tuple[int, ...] = (VERSION,)
    role: Role
    name: str = ""


class ErrorMessage(Message, frozen=True, kw_only=True):
    """Answer to a request that was refused. `kind` is the name of a class in core.errors."""

    kind: str
    message: str
    field: str | None = None
    remedy: str | None = None


class Accepted(Message, frozen=True, kw_only=True):
    """Answer to a request that was carried out, or will be."""


class StartJob(Message, frozen=True, kw_only=True):
    """Request to start a batch job. Answer: Accepted when the start is stored; repeated, it does
    nothing more.

    Paths are absolute and file patterns are expanded. Without a `script` the `arguments` are those
    of a program. `environment` has entries NAME=value; the node adds what only it knows. `limits`
    are soft limits by the names of setrlimit(2) without RLIMIT_, -1 for none. `cpus` binds the job
    to these CPUs; empty: it is not bound. `seconds` is the time that is left until the time limit.
    `memory` is what the job has on the node in MiB; 0: it has no limit. `gpus` are those of the run
    by their numbers on the node.
    """

    run: Run
    script: bytes
    arguments: tuple[str, ...] = ()
    environment: tuple[bytes, ...]
    directory: str
    input: str = "/dev/null"
    output: str
    error: str = ""
    append: bool = False
    umask: int = 0o022
    limits: dict[str, int] = {}
    cpus: tuple[int, ...] = ()
    seconds: Seconds | None = None
    memory: Annotated[int, msgspec.Meta(ge=0)] = 0
    gpus: GpuNumbers = ()


def run_directory(spool: str, run: Run) -> str:
    """Return the directory of a run below the spool directory of a node."""
    # Job ids wrap around; with the time of submission no two runs have one directory.
    return f"{spool}/jobs/{run.job_id}.{run.submitted}.{run.restart}"


def step_directory(spool: str, run: Run, step: int) -> str:
    """Return the directory of a step, where its step daemon listens."""
    return f"{run_directory(spool, run)}/steps/{step}"


class TaskStart(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Task to start, and what it has in place of what its step has; empty: nothing."""

    rank: Annotated[int, msgspec.Meta(ge=0)]
    arguments: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    input: str = ""
    output: str = ""
    error: str = ""
    gpus: GpuNumbers = ()


class StartStep(Message, frozen=True, kw_only=True):
    """Request to start the tasks of a step of a run on a node. Answer: Accepted when they are
    written down; repeated, it does nothing more.

    `node_index` is the number of the node in the step. Paths are absolute and file patterns are
    expanded; an empty one of a task is a stream to srun. `input_rank` is the only task that gets
    the input of srun; None: all. `terminal` are the rows and columns of the terminal of the task 0;
    none: it has none. `gpus` are those of all tasks by their numbers on the node, unless a task has
    its own, and `run_gpus` those of the run.
    """

    run: Run
    step: Annotated[int, msgspec.Meta(ge=0)]
    node_index: int = 0
    tasks: Annotated[tuple[TaskStart, ...], msgspec.Meta(min_length=1)]
    arguments: tuple[str, ...] = ()
    environment: tuple[bytes, ...]
    directory: str
    append: bool = False
    input_rank: int | None = None
    terminal: Annotated[tuple[int, ...], msgspec.Meta(max_length=2)] = ()
    shows_cpus: bool = False
    shows_gpus: bool = False
    prologs: tuple[str, ...] = ()
    epilogs: tuple[str, ...] = ()
    umask: int = 0o022
    limits: dict[str, int] = {}
    gpus: GpuNumbers = ()
    run_gpus: GpuNumbers = ()


class EndStep(Message, frozen=True, kw_only=True):
    """Request to end a step, or to signal its processes if `number` is not 0. Answer: Accepted."""

    run: Run
    step: int
    number: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0
    reason: str = ""


class ForgetStep(Message, frozen=True, kw_only=True):
    """Request to forget a step that has ended, because its end is stored. Answer: Accepted."""

    run: Run
    step: int


class SignalJob(Message, frozen=True, kw_only=True):
    """Request to signal the processes of a job, or only its batch script or its steps.

    Answer: Accepted.
    """

    run: Run
    number: SignalNumber
    target: SignalTarget = "all"


class SuspendRun(Message, frozen=True, kw_only=True):
    """Request to suspend all processes of a run, or to let them go on; its time limit stands still
    with them. Answer: Accepted.
    """

    run: Run
    suspended: bool


class EndJob(Message, frozen=True, kw_only=True):
    """Request to end a job after some seconds, in place of its time limit. Answer: Accepted.

    With the reason "time limit" it is a new time limit; `seconds` may be None then: no limit.
    """

    run: Run
    seconds: Seconds | None = 0.0
    reason: Annotated[str, msgspec.Meta(min_length=1)]


class NotifyJob(Message, frozen=True, kw_only=True):
    """Request to write a line to the error output of a running job. Answer: Accepted."""

    run: Run
    text: Annotated[str, msgspec.Meta(max_length=NOTICE_MAX)]


class ForgetRun(Message, frozen=True, kw_only=True):
    """Request to forget a run that is finished, because its end is stored. Answer: Accepted."""

    run: Run


class PollNode(Message, frozen=True, kw_only=True):
    """Request for the state of the node. Answer: Registration."""


class PollUsage(Message, frozen=True, kw_only=True):
    """Request for the usage of the running jobs. Answer: UsageReport."""


class ListProcesses(Message, frozen=True, kw_only=True):
    """Request for the processes of a job. Answer: ProcessList."""

    run: Run


class FindJob(Message, frozen=True, kw_only=True):
    """Request for the job of a process. Answer: JobOfProcess."""

    pid: int


class WarnProcess(Message, frozen=True, kw_only=True):
    """Request to signal a process of a job some seconds before the time limit. Answer: Accepted."""

    run: Run
    pid: int
    number: SignalNumber
    seconds: Seconds


class SetDebug(Message, frozen=True, kw_only=True):
    """Debug level of the node daemon until its next start, in Slurm's word. Answer: Accepted."""

    level: str


class RunUsage(Message, frozen=True, kw_only=True):
    """Usage of all processes of a run. The CPU seconds never fall.

    `gpu_busy_seconds` are those for which its GPUs were busy, of the `gpu_seconds` of all of them
    for which that is known, and samples were taken for `sampled_seconds`.
    """

    cpu_seconds: float = 0.0
    resident_max_kib: int = 0
    virtual_max_kib: int = 0
    gpu_busy_seconds: float = 0.0
    gpu_seconds: float = 0.0
    sampled_seconds: float = 0.0

    def with_node(self, other: RunUsage) -> Self:
        """Return the usage of a step with that of another node: times add up, sizes do not."""
        return msgspec.structs.replace(
            self,
            cpu_seconds=self.cpu_seconds + other.cpu_seconds,
            resident_max_kib=max(self.resident_max_kib, other.resident_max_kib),
            virtual_max_kib=max(self.virtual_max_kib, other.virtual_max_kib),
            gpu_busy_seconds=self.gpu_busy_seconds + other.gpu_busy_seconds,
            gpu_seconds=self.gpu_seconds + other.gpu_seconds,
            sampled_seconds=max(self.sampled_seconds, other.sampled_seconds),
        )


class RunOutcome(Message, frozen=True, kw_only=True):
    """End of a run, or of a step, on a node.

    `status` is that of wait(2), None if it is not known: the node did not start the script, or its
    step daemon was killed. `text` is the reason of the request that ended it, or what went wrong.
    Times are seconds since 1970; `elapsed_seconds` is measured on the monotonic clock.
    """

    cause: EndCause
    status: int | None = None
    text: str = ""
    ended: float
    elapsed_seconds: float = 0.0
    usage: RunUsage = RunUsage()


class StepStatus(Message, frozen=True, kw_only=True):
    """State of a step on a node: its tasks run, or `end` says how they ended.

    The status of the end is that of a task that a signal ended, else the highest.
    """

    run: Run
    step: int
    end: RunOutcome | None = None


class RunStatus(Message, frozen=True, kw_only=True):
    """State of a run on a node.

    Prolog, starting, running, epilog (no process is left, `end` is known), finished. `unkillable`
    are the processes that SIGKILL has not ended within UnkillableStepTimeout. `epilog_status` is
    that of wait(2). The node must be drained if there are unkillable processes, if that status is
    not 0, and after the end cause "prolog".
    """

    run: Run
    state: RunState
    unkillable: tuple[int, ...] = ()
    end: RunOutcome | None = None
    epilog_status: int | None = None


class Registration(Message, frozen=True, kw_only=True):
    """State of a node: its resources, its boot, and all runs that it knows.

    Memory and the disk of /tmp are in MiB; free memory, disk and load are the host's. `started` is
    the start of the daemon, in seconds since 1970 as `boot_time`. The sockets of steps are below
    `spool`. With `control_groups` the kernel lists the processes of each run; without, they are the
    descendants of the step daemons. `gpus` has the type of each GPU by its number; with
    `device_groups` a run cannot open those of others. `memory_limits` says in words how jobs are
    held to their memory; empty: not at all.
    """

    node: str
    release: str
    started: float
    cpus: int
    memory: int
    free_memory: int
    tmp: int
    load: float
    boot_time: float
    boot_id: str
    system: str
    machine: str
    control_groups: bool = False
    device_groups: bool = False
    memory_limits: str = ""
    gpus: tuple[str, ...] = ()
    runs: tuple[RunStatus, ...] = ()
    steps: tuple[StepStatus, ...] = ()
    spool: str = ""


class UsageReport(Message, frozen=True, kw_only=True):
    """Usage of the batch scripts of the running jobs, and of their steps by number."""

    runs: tuple[tuple[Run, RunUsage], ...]
    steps: tuple[tuple[Run, int, RunUsage], ...] = ()


class ListedProcess(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Process of a job and its step; None: the batch script. Of a task also its number on the node
    and its rank; None: it is none.
    """

    pid: int
    step: int | None = None
    local: int | None = None
    rank: int | None = None


class ProcessList(Message, frozen=True, kw_only=True):
    """Processes of a job."""

    processes: tuple[ListedProcess, ...]


class JobOfProcess(Message, frozen=True, kw_only=True):
    """Run to which a process belongs, None if to none, and the seconds until its time limit."""

    run: Run | None = None
    seconds: float | None = None


AnyMessage = (
    Hello | ErrorMessage | Accepted | StartJob | StartStep | EndStep | ForgetStep | SignalJob
    | SuspendRun | EndJob | ForgetRun | PollNode | PollUsage | ListProcesses | FindJob | NotifyJob
    | SetDebug | RunStatus | StepStatus | Registration | UsageReport | ProcessList | JobOfProcess
    | WarnProcess
)  # fmt: skip
_decode = msgspec.msgpack.Decoder(AnyMessage).decode
_encode = msgspec.msgpack.Encoder().encode


def encode_message(message: Message, number: int = 0) -> bytes:
    """Return the frame of a message. Raises FrameError if it is too long.

    The number is that of the request; 0 for a message that is neither request nor answer.
    """
    return encode_frame(Frame(MESSAGE, number, _encode(message)))


def decode_message(frame: Frame) -> Message:
    """Return the message of a frame. Raises FrameError if it is none of this version."""
    if frame.kind != MESSAGE:
        raise FrameError(f"a frame of the unknown kind {frame.kind}")
    try:
        message: Message = _decode(frame.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"a message with bad content: {error}") from error
    return message


def error_message(error: FairbankError) -> ErrorMessage:
    """Return the answer to a request that raised an error."""
    return ErrorMessage(
        kind=type(error).__name__, message=error.message, field=error.field, remedy=error.remedy
    )
