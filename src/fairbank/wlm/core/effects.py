"""Effects of an event, in the order in which they are carried out: the stored rows come first."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from fairbank.cluster.job import Run
from fairbank.scheduling.pending_job import PendingJob
from fairbank.wlm.core.events import TimerKind
from fairbank.wlm.core.jobs import Submission, WlmRun
from fairbank.wlm.core.steps.step import WlmStep
from fairbank.wlm.protocol.messages import (
    EndJob,
    EndStep,
    ForgetRun,
    ForgetStep,
    NotifyJob,
    SignalJob,
    SuspendRun,
)

Table = Literal[
    "jobs",
    "runs",
    "steps",
    "ended_steps",
    "step_usages",
    "nodes",
    "partitions",
    "partition_settings",
    "reservations",
    "messages",
    "counters",
    "usage",
    "qos_usage",
    "accounts",
]
AgentMessageKind = Literal["prolog", "limit", "epilog"]
LogLevel = Literal["info", "warning", "error"]


class StoredRow(NamedTuple):
    """Row of the state file. `value` None: the row is deleted.

    Rows of `runs`, `ended_steps` and `step_usages` are accounting records, which the core does not
    read again.
    """

    table: Table
    key: str
    value: object


class StoreRows(NamedTuple):
    """Commit of rows. All other effects wait for it."""

    rows: tuple[StoredRow, ...]


class Reply(NamedTuple):
    """Answer to a request: its result, or the error that refused it."""

    request: int
    answer: object


class StartRun(NamedTuple):
    """Start of a run. The first node of the run starts its script; a run starts once on a node.

    `seconds` is how long it may run on its own if the controller is away; None: without a limit.
    """

    run: WlmRun
    request: PendingJob
    submission: Submission
    seconds: int | None


class AgentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message to the agent, kept until it is acknowledged, with the run as it was.

    prolog   the run waits for a verdict
    limit    its time limit has changed
    epilog   all of its nodes are cleared; one without `run.started` never began
    """

    number: int
    kind: AgentMessageKind
    run: WlmRun
    request: PendingJob
    submission: Submission


class StartTasks(NamedTuple):
    """Start of the tasks of a step on a node, once. `launch` is what they execute."""

    step: WlmStep
    launch: object


class ChangeLimit(NamedTuple):
    """Change of the time limit of a run; `seconds` None: it has none.

    `started` is the monotonic time from which it counts; None: the run has not begun, or is
    suspended. The seconds that are left are computed when the message is sent, for a commit may
    take long.
    """

    run: Run
    seconds: int | None
    started: int | None


NodeRequest = EndJob | ForgetRun | SignalJob | SuspendRun | NotifyJob | EndStep | ForgetStep
Message = StartRun | StartTasks | ChangeLimit | NodeRequest | AgentMessage


class Send(NamedTuple):
    """Message to a node, or to the agent with an empty name."""

    node: str
    message: Message


class RequestPlan(NamedTuple):
    """Request of a scheduling pass."""


class SetTimer(NamedTuple):
    """Timer. `at` is in seconds of the wall clock or of the monotonic clock, by its kind."""

    kind: TimerKind
    number: int
    at: int


class LogLine(NamedTuple):
    """Line for the log."""

    level: LogLevel
    text: str


CoreEffect = StoreRows | Reply | Send | RequestPlan | SetTimer | LogLine
