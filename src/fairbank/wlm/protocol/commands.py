"""Requests of commands to the controller, as JSON in frames (docs/decisions/0052).

A command sends one frame of the kind REQUEST for each request, with any number, and gets one frame
ANSWER or ERROR with the same number. The kernel names the user, so there is no greeting. Jobs are
written as `7`, `7_3` or `7_[1-3,5]`, bytes as base64 text, times as seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec

from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.wlm.protocol.frames import ANSWER, ERROR, REQUEST, Frame, encode_frame
from fairbank.wlm.protocol.messages import NOTICE_MAX, error_message

VERSION = 1
"""Version of the requests."""
PAGE = 1_000
"""Most rows of an answer."""

Row = Literal[
    "jobs", "nodes", "partitions", "reservations", "licenses", "accounting", "priorities", "shares",
    "associations", "users", "qos", "steps",
]  # fmt: skip
Names = Annotated[tuple[str, ...], msgspec.Meta(max_length=100_000)]
Jobs = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=100_000)]
Fields = dict[str, str]
"""Fields of scontrol by their names, as written; they may be shortened as in scontrol."""


class CommandRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="request"
):
    """Request. Its types have no fields of any content, so that no body can be nested deeply."""

    version: int


class SubmitRequest(CommandRequest, frozen=True, tag="submit"):
    """Submission. Answer: the job, and with --test-only its expected `start` and `nodes`, or the
    `reason` why it would wait, and the `cpus` and the `partition` that it requests.

    `options` are the long names of options with their values as written. `environment` has entries
    NAME=value, separated by NUL. `limits` are soft limits by the names of setrlimit(2) without
    RLIMIT_, -1 for none. `host` is where the command runs, `script_name` the path of the script as
    it was named; empty for --wrap and standard input. `submit_line` is the command line. With an
    empty script, srun or salloc runs steps in the job and completes it.
    """

    script: bytes
    directory: str
    options: dict[str, str] = {}
    arguments: tuple[str, ...] = ()
    environment: bytes = b""
    umask: Annotated[int, msgspec.Meta(ge=0, le=0o777)] = 0o022
    limits: dict[str, int] = {}
    host: str = ""
    script_name: str = ""
    submit_line: str = ""
    command: Literal["sbatch", "srun", "salloc"] = "sbatch"


class RowFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Selection of rows that fit all of its lists; an empty list selects all.

    `tasks`: a row for each task of an array. Of accounting, `start` and `end` bound the period,
    `duplicates`: also the earlier runs of requeued jobs, and `steps`: after each run its steps.
    """

    jobs: Names = ()
    users: Names = ()
    accounts: Names = ()
    partitions: Names = ()
    states: Names = ()
    names: Names = ()
    qos: Names = ()
    reservations: Names = ()
    nodes: Names = ()
    licenses: Names = ()
    tasks: bool = False
    start: int | None = None
    end: int | None = None
    duplicates: bool = False
    steps: bool = False


class CancelRequest(CommandRequest, frozen=True, tag="cancel"):
    """Cancellation of jobs, or a signal to their steps. Answer: results.

    Those of `jobs` that fit the filter; without `jobs` all that fit, and the filter must not be
    empty then. `batch`: the signal is only for the script; `full`: for the script and the steps.
    """

    jobs: Names = ()
    filter: RowFilter = RowFilter()
    signal: Annotated[int, msgspec.Meta(ge=1, le=64)] | None = None
    batch: bool = False
    full: bool = False


class JobsRequest(CommandRequest, frozen=True):
    """Request about jobs. Answer: `results`, each with `job` and `error`, null if there is none."""

    jobs: Jobs


class HoldRequest(JobsRequest, frozen=True, tag="hold"):
    """Hold of jobs."""


class UserHoldRequest(JobsRequest, frozen=True, tag="uhold"):
    """Hold that the owner may release, also if an operator makes it."""


class ReleaseRequest(JobsRequest, frozen=True, tag="release"):
    """Release of held jobs."""


class RequeueRequest(JobsRequest, frozen=True, tag="requeue"):
    """Requeue of jobs. `held`: they are then held; `special`: with the state SPECIAL_EXIT."""

    held: bool = False
    special: bool = False


class SuspendRequest(JobsRequest, frozen=True, tag="suspend"):
    """Suspension of running jobs."""


class ResumeRequest(JobsRequest, frozen=True, tag="resume"):
    """End of the suspension of jobs."""


class TopRequest(JobsRequest, frozen=True, tag="top"):
    """Move of jobs before all other jobs of their user."""


class NotifyRequest(JobsRequest, frozen=True, tag="notify"):
    """Line for the error output of running jobs."""

    text: Annotated[str, msgspec.Meta(max_length=NOTICE_MAX)]


class UpdateJobRequest(JobsRequest, frozen=True, tag="update-job"):
    """Changes of jobs."""

    fields: Fields


class UpdateNodeRequest(CommandRequest, frozen=True, tag="update-node"):
    """Changes of nodes, which are a host list. The answer is empty."""

    nodes: str
    fields: Fields


class EntityRequest(CommandRequest, frozen=True):
    """Request about a partition or reservation. Answer: its `name`."""

    entity: Literal["partition", "reservation"]
    fields: Fields


class CreateRequest(EntityRequest, frozen=True, tag="create"):
    """Creation of a partition or reservation."""


class UpdateRequest(EntityRequest, frozen=True, tag="update"):
    """Changes of a partition or reservation."""


class DeleteRequest(EntityRequest, frozen=True, tag="delete"):
    """Deletion of the partition or reservation that is named."""


class RowsRequest(CommandRequest, frozen=True, tag="rows"):
    """Rows of one kind, a page at a time.

    `columns` are fields of the line class in report.slurm. Answer: `change`, `columns`, `rows`, the
    cursor `after` of the next page or null, `now`, `cluster`; or `unchanged`, if nothing has
    changed since the answer with the number `change`.
    """

    of: Row
    columns: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=500)]
    filter: RowFilter = RowFilter()
    change: int | None = None
    after: str | None = None


class ConfigRequest(CommandRequest, frozen=True, tag="config"):
    """Settings as scontrol shows them. Answer: `settings`, pairs of name and value."""


class ScriptRequest(CommandRequest, frozen=True, tag="script"):
    """Batch script of a job. Answer: `script`."""

    job: str


class WaitRequest(CommandRequest, frozen=True, tag="wait"):
    """Wait for the end of a job. Answer, when it has ended: `status` of wait(2)."""

    job: int


class StatisticsRequest(CommandRequest, frozen=True, tag="statistics"):
    """Statistics of sdiag."""


class PingRequest(CommandRequest, frozen=True, tag="ping"):
    """Answer: `release`, `host`, `pid`, `up` in seconds."""


class WaitStartRequest(CommandRequest, frozen=True, tag="wait-start"):
    """Wait for the start of a job, at most `within` some seconds; null: as long as it takes.

    Answer: its `state` and `reason`, and when it runs the `environment` of its first node. With the
    request of a `step` of this job, that is created when the start of the job is sent to the nodes,
    or with a Prolog when the job has begun, and gets its variables. When the job runs, the answer
    has the `step` as the answer to `create-step` has it; null: it was not created, and
    `create-step` says why.
    """

    job: int
    within: Annotated[float, msgspec.Meta(ge=0, le=86_400)] | None = None
    step: CreateStepRequest | None = None


class CompleteRequest(CommandRequest, frozen=True, tag="complete"):
    """End of a job without a script, with a status of wait(2). The answer is empty.

    If srun names its `step`, the end of the job waits for the nodes to say how that has ended.
    """

    job: int
    status: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)] = 0
    step: int | None = None


class CreateStepRequest(CommandRequest, frozen=True, kw_only=True, tag="create-step"):
    """Creation of a step of a running job. Answer: its number `step`, and for each of its `nodes`
    `node`, `ranks`, the `directory` of its step daemon, and whether its tasks run (`is_running`).

    `options` are those of srun by long name, as written; of `output` and `error` only patterns of
    files that the tasks open. `arguments` are those of all tasks, `programs` those of single ranks.
    `input` is a file that the tasks open; empty: srun gives it. `input_rank` is the only task that
    gets it; null, or a task that the step has not: all. `terminal` are rows and columns of a
    terminal for the task 0; empty: none. A request with the `key` of a step of the job that runs
    gets that step, and a `repeated` one also gets a step that has ended.
    """

    job: int
    options: dict[str, str] = {}
    arguments: tuple[str, ...] = ()
    programs: dict[int, tuple[str, ...]] = {}
    environment: bytes = b""
    directory: str
    umask: Annotated[int, msgspec.Meta(ge=0, le=0o777)] = 0o022
    limits: dict[str, int] = {}
    input: str = ""
    input_rank: int | None = None
    terminal: tuple[Annotated[int, msgspec.Meta(ge=0, le=65_535)], ...] = ()
    submit_line: str = ""
    key: Annotated[str, msgspec.Meta(max_length=64)] = ""
    repeated: bool = False


class StepStateRequest(CommandRequest, frozen=True, tag="step-state"):
    """State of a step; null: of the only one that runs. Answer: `job` and `step`, `state`, RUNNING
    or how it has ended, its `status` so far, and its `nodes` as in the answer to `create-step`.
    """

    job: int | str
    step: int | None = None


class EndStepRequest(CommandRequest, frozen=True, tag="end-step"):
    """End of a step, or a signal to its tasks if `signal` is not 0. The answer is empty.

    `lost_node` is the node whose step daemon srun has lost, so that the step has failed.
    """

    job: int
    step: int
    signal: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0
    lost_node: Annotated[str, msgspec.Meta(max_length=255)] = ""


class OwnRequest(CommandRequest, frozen=True, tag="own"):
    """This process goes on for its parent, the srun of a job or step. The answer is empty.

    A job ends when the process that submitted it without a script is gone (InactiveLimit), unless
    that was salloc --no-shell.
    """

    job: int


class ProcessesRequest(CommandRequest, frozen=True, tag="processes"):
    """Processes of a job. Answer: `processes`, with `pid`, `job` and `step`.

    `step` is a number, `batch` for the script, or `extern` for a process that waits on a node
    without the script. Of a task they also have `local`, its number on the node, and `rank`; null:
    it is none, or not known.
    """

    job: str


class JobOfProcessRequest(CommandRequest, frozen=True, tag="job-of-process"):
    """Job of a process. Answer: `job`, null if it belongs to none, and `ends`."""

    pid: Annotated[int, msgspec.Meta(ge=1)]


class WarnProcessRequest(CommandRequest, frozen=True, tag="warn-process"):
    """Signal to a process of a job, `before` seconds before the time limit. Answer: that of
    `job-of-process`.
    """

    pid: Annotated[int, msgspec.Meta(ge=1)]
    signal: Annotated[int, msgspec.Meta(ge=1, le=64)]
    before: Annotated[int, msgspec.Meta(ge=0, le=65_535)]


class CheckRequest(CommandRequest, frozen=True, tag="check"):
    """Checks of the live state. Answer: `release`, and `checks` with `what`, `ok` and `remedy`."""


class ReconfigureRequest(CommandRequest, frozen=True, tag="reconfigure"):
    """Loading of the settings. Answer: `notes`, sentences."""


class SetDebugRequest(CommandRequest, frozen=True, tag="set-debug"):
    """Debug level until the next start or reconfiguration, of the controller or of the daemons of
    some nodes (a hostlist). The answer is empty.
    """

    level: str
    nodes: str = ""


class ShutdownRequest(CommandRequest, frozen=True, tag="shutdown"):
    """End of the controller; jobs go on. The answer is empty."""


AnyRequest = (
    SubmitRequest | CancelRequest | HoldRequest | UserHoldRequest | ReleaseRequest | RequeueRequest
    | SuspendRequest | ResumeRequest
    | TopRequest | NotifyRequest | UpdateJobRequest | UpdateNodeRequest | CreateRequest
    | UpdateRequest | DeleteRequest | RowsRequest | ConfigRequest | ScriptRequest | WaitRequest
    | StatisticsRequest | PingRequest | ProcessesRequest | JobOfProcessRequest | CheckRequest
    | ReconfigureRequest | SetDebugRequest | ShutdownRequest | CreateStepRequest | EndStepRequest
    | StepStateRequest | WaitStartRequest | CompleteRequest | WarnProcessRequest | OwnRequest
)  # fmt: skip
REQUESTS: Mapping[str, type[CommandRequest]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyRequest)
}
"""Types of requests by their tag."""


class _Version(msgspec.Struct):
    version: int


_version = msgspec.json.Decoder(_Version)
_decoder = msgspec.json.Decoder(AnyRequest)
_encoder = msgspec.json.Encoder()


def decode_request(frame: Frame) -> AnyRequest:
    """Return the request of a frame. Raises InvalidInput if it is none of this version."""
    if frame.kind != REQUEST:
        raise _bad(f"a frame of the kind {frame.kind}")
    try:
        # A later version may have other fields, so that its number is read first.
        version = _version.decode(frame.body).version
        if version == VERSION:
            request: AnyRequest = _decoder.decode(frame.body)
            return request
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad(str(error)) from error
    except FairbankError as error:
        raise _bad(error.message) from error
    raise InvalidInput(
        f"the controller speaks version {VERSION} of the requests, not version {version}",
        field="version",
        remedy="use the same release on both sides",
    )


def encode_answer(number: int, answer: Mapping[str, Any]) -> bytes:
    """Return the frame of the answer to a request with this number."""
    return encode_frame(Frame(ANSWER, number, _encoder.encode(answer)))


def encode_error(number: int, error: FairbankError) -> bytes:
    """Return the frame of the error that refused a request with this number."""
    return encode_frame(Frame(ERROR, number, _encoder.encode(error_message(error))))


def _bad(what: str) -> InvalidInput:
    return InvalidInput(
        f"the controller cannot read the request: {what}",
        field="request",
        remedy="use the same release on both sides",
    )
