"""Events of the core: requests, messages from nodes and agent, plans and timers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from fairbank.cluster.job import Run
from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.submission.arrays import ArrayTasks
from fairbank.core.submission.dependencies import DependencyExpression
from fairbank.jobqueue.arrays import JobSelection
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.wlm.core.accounts import BankAccount
from fairbank.wlm.core.jobs import Moment, Owner, Submission
from fairbank.wlm.core.node_states import NodeEvent
from fairbank.wlm.core.steps.step import StepRequest
from fairbank.wlm.protocol.messages import RunStatus, SignalTarget, StepStatus


class Caller(NamedTuple):
    """User who makes a request, as the kernel names them."""

    uid: int
    name: str


class SubmitJob(msgspec.Struct, frozen=True, kw_only=True):
    """Submission of a job or an array.

    `job` has number 0, and no partition if it names none. Its `priority` 0 means the default.
    `held`: --hold. `test_only`: the job is checked and planned, and not accepted. `owner` is the
    process for which a job without a script is.
    """

    job: PendingJob
    submission: Submission
    array: ArrayTasks | None = None
    dependencies: DependencyExpression | None = None
    held: bool = False
    test_only: bool = False
    owner: Owner | None = None


class UpdateJob(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of a job; what is unset stays. `limit` None: that of the partition."""

    jobs: JobSelection
    name: str | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    admin_comment: str | UnsetType = UNSET
    may_requeue: bool | UnsetType = UNSET
    dependencies: DependencyExpression | UnsetType | None = UNSET
    priority: int | UnsetType = UNSET
    limit: int | UnsetType | None = UNSET
    time_min: int | UnsetType | None = UNSET
    eligible: int | UnsetType = UNSET
    deadline: int | UnsetType | None = UNSET
    partitions: tuple[str, ...] | UnsetType = UNSET
    account: str | UnsetType = UNSET
    qos: str | UnsetType = UNSET
    reservation: str | UnsetType | None = UNSET
    throttle: int | UnsetType | None = UNSET
    wanted: ResourceRequest | UnsetType = UNSET
    licenses: Mapping[str, int] | UnsetType = UNSET
    nice: int | UnsetType = UNSET
    site_factor: int | UnsetType = UNSET
    extra: str | UnsetType = UNSET
    output: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    directory: str | UnsetType = UNSET
    mail_types: frozenset[str] | UnsetType = UNSET
    mail_user: str | UnsetType = UNSET


class HoldJob(NamedTuple):
    """Hold. `by_owner`: the owner may release it, also if an operator holds it (scontrol uhold)."""

    jobs: JobSelection
    by_owner: bool = False


class ReleaseJob(NamedTuple):
    """Release of a held job."""

    jobs: JobSelection


class RequeueJob(NamedTuple):
    """Requeue. `held`: it is then held (requeuehold); `special`: with the state SPECIAL_EXIT."""

    jobs: JobSelection
    held: bool = False
    special: bool = False


class CancelJob(NamedTuple):
    """Cancellation of a job."""

    jobs: JobSelection


class SuspendJob(NamedTuple):
    """Suspension of running jobs, which keep what they have."""

    jobs: JobSelection


class ResumeJob(NamedTuple):
    """End of the suspension of jobs."""

    jobs: JobSelection


class SendSignal(NamedTuple):
    """Signal to the steps of running jobs, to their batch scripts (scancel -b), or to both (-f)."""

    jobs: JobSelection
    signal: int
    target: SignalTarget = "steps"


class SendNotice(NamedTuple):
    """Line for the error output of running jobs (scontrol notify)."""

    jobs: JobSelection
    text: str


class CompleteJob(NamedTuple):
    """End of a job without a script, by srun or salloc. `status` is that of wait(2)."""

    job: int
    status: int


class ChangeOwner(NamedTuple):
    """Change of the owner of a job, or of the srun of its step, by the process that goes on for its
    `parent`.
    """

    job: int
    parent: Owner
    owner: Owner


class CreateStep(NamedTuple):
    """Creation of a step of a running job. `launch` is what its tasks execute, which the core does
    not know. `srun` is the process that will follow it.
    """

    job: int
    step: StepRequest
    launch: object
    srun: Owner | None = None


class EndStepOf(NamedTuple):
    """End of a step, or a signal to its tasks if `signal` is not 0.

    `lost_node` is the node whose step daemon srun has lost; empty: none.
    """

    job: int
    step: int
    signal: int = 0
    lost_node: str = ""


class TopJob(NamedTuple):
    """Move of a job before all other jobs of its user."""

    jobs: JobSelection


class UpdateNode(NamedTuple):
    """Change of a node by an administrator: its condition, or with the event None its reason. Of
    the other fields, what is None stays.
    """

    node: str
    event: NodeEvent | None = None
    reason: str = ""
    weight: int | None = None
    features: frozenset[str] | None = None
    comment: str | None = None
    extra: str | None = None


class UpdatePartition(NamedTuple):
    """Creation or change of a partition. Running jobs go on."""

    rules: PartitionRules


class DeletePartition(NamedTuple):
    """Deletion of a partition."""

    name: str


class SetReservation(NamedTuple):
    """Creation or change of a reservation."""

    reservation: Reservation


class DeleteReservation(NamedTuple):
    """Deletion of a reservation."""

    name: str


RequestBody = (
    SubmitJob | UpdateJob | HoldJob | ReleaseJob | RequeueJob | CancelJob | SuspendJob | ResumeJob
    | SendSignal | SendNotice | CompleteJob | ChangeOwner | CreateStep | EndStepOf | TopJob
    | UpdateNode | UpdatePartition | DeletePartition | SetReservation | DeleteReservation
)  # fmt: skip


class RequestMade(NamedTuple):
    """Request, which gets one reply under its number."""

    number: int
    caller: Caller
    body: RequestBody


class RunChanged(NamedTuple):
    """Change of a run on a node."""

    node: str
    status: RunStatus


class StepChanged(NamedTuple):
    """Change of a step on a node."""

    node: str
    status: StepStatus


class NodeRegistered(NamedTuple):
    """Registration: real resources, boot id, and the runs and steps that the node knows."""

    resources: Node
    boot: str
    runs: tuple[RunStatus, ...] = ()
    steps: tuple[StepStatus, ...] = ()


class NodeDisconnected(NamedTuple):
    """Loss of the connection to a node, which gets no work until it registers again."""

    node: str


class NodeSilent(NamedTuple):
    """Silence of a node for SlurmdTimeout."""

    node: str


class OwnerLost(NamedTuple):
    """End of the owner of a job, InactiveLimit ago."""

    job: int
    owner: Owner


class VerdictGiven(NamedTuple):
    """Verdict of the agent on a prolog message: `reason` is one word, `text` a sentence."""

    message: int
    run: Run
    action: Literal["run", "hold", "cancel"]
    reason: str = ""
    text: str = ""


class MessageAcknowledged(NamedTuple):
    """Receipt of a message by the agent, which does not need it again."""

    message: int


class AccountsRead(NamedTuple):
    """Accounts of the bank by name, all of them."""

    accounts: Mapping[str, BankAccount]


class AgentConnected(NamedTuple):
    """Connection of an agent, perhaps a new one that does not know the running jobs."""


class PlanMade(NamedTuple):
    """Plan of a pass over a snapshot of this core.

    `has_reservations`: backfill was part of the pass, so that its reservations replace the earlier
    ones.
    """

    plan: SchedulePlan[PendingJob, Placement]
    has_reservations: bool = True


class TimerKind(Enum):
    """Kind of a timer. Those of the wall clock are BEGIN, DEPENDENCY, DEADLINE, RESERVATION."""

    BEGIN = "begin"
    DEPENDENCY = "dependency"
    DEADLINE = "deadline"
    RESERVATION = "reservation"
    START = "start"
    WARNING = "warning"
    LIMIT = "limit"
    GRACE = "grace"
    SUSPENSION = "suspension"
    PRIORITY = "priority"
    COMPLETION = "completion"
    FORGET = "forget"

    @property
    def is_wall(self) -> bool:
        return self in (self.BEGIN, self.DEPENDENCY, self.DEADLINE, self.RESERVATION)

    def time(self, now: Moment) -> int:
        """Return the time of its clock."""
        return now.wall if self.is_wall else now.mono


class TimerFired(NamedTuple):
    """Time of a timer. One that is early, or that is not needed any more, changes nothing."""

    kind: TimerKind
    number: int = 0


CoreEvent = (
    RequestMade | NodeRegistered | NodeDisconnected | NodeSilent | RunChanged | StepChanged
    | OwnerLost | VerdictGiven
    | MessageAcknowledged | AgentConnected | AccountsRead | PlanMade | TimerFired
)  # fmt: skip
