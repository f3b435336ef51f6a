"""Job of the workload manager: its submission, its state, and the run that has its nodes.

All values are frozen and consist of values that JSON can write, since each is a row of the state
file.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

import msgspec

from fairbank.cluster.dependency import Dependencies
from fairbank.cluster.job import Run
from fairbank.cluster.node import Gpus, gpu_counts
from fairbank.core.submission.values import WarningSignal
from fairbank.jobqueue.arrays import record_name
from fairbank.jobqueue.dependencies import DependencyJob, Progress, wait_reason
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.bindings import NodeBinding
from fairbank.scheduling.placement.free_resources import NodeShare, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.wlm.core.job_states import JobState
from fairbank.wlm.protocol.messages import RunOutcome

DELAY_SECONDS = 1
"""Difference between the begin of a run or step and the time of its message that is no delay."""


class Moment(NamedTuple):
    """Time of an event, in seconds.

    `wall` is since 1970, for begin times, reservations, accounting and display. `mono` measures
    limits: it never goes back, not even over a restart of the controller or its host.
    """

    wall: int
    mono: int

    def minus(self, seconds: int) -> Moment:
        """Return the moment some seconds earlier."""
        return Moment(self.wall - seconds, self.mono - seconds)


def later(one: Moment, other: Moment) -> Moment:
    """Return the later moment; the wall clock may have been set between them."""
    return one if one.mono >= other.mono else other


def end_time(end: RunOutcome, since: Moment, now: Moment) -> Moment:
    """Return the time at which a script or the tasks of a step ended.

    The message may be late: the node daemon or the controller was down, or the disk was full.

    Args:
        end: the end, as the node saw it.
        since: time since when they may have run. They took as long as the end says, so that a wall
            clock that was set does not move their end to an earlier time.
        now: time of the message.
    """
    delay = min(now.wall - int(end.ended), now.mono - since.mono - int(end.elapsed_seconds))
    return now.minus(max(delay, 0))


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a submission that no scheduling pass needs.

    `script` and `environment` are digests; a job of srun or salloc has no script. `input`, `output`
    and `error` are patterns, empty for the defaults. `may_requeue`: --requeue. `no_kill`: the job
    goes on when a node fails that does not run its script. `kill_invalid`: it is cancelled when its
    dependencies cannot be met. `limits` are soft limits by the names of setrlimit(2) without
    RLIMIT_, -1 for none. `command` is the path of the script with its arguments, `submit_line` the
    command line. `site_factor` is added to the priority; only operators set it.
    """

    name: str
    uid: int
    gid: int
    script: str
    environment: str = ""
    arguments: tuple[str, ...] = ()
    directory: str = "/"
    input: str = ""
    output: str = ""
    error: str = ""
    open_mode: str = ""
    may_requeue: bool = True
    no_kill: bool = False
    kill_invalid: bool = False
    warning: WarningSignal | None = None
    comment: str = ""
    umask: int = 0o022
    limits: Mapping[str, int] = {}
    nice: int = 0
    site_factor: int = 0
    command: str = ""
    submit_line: str = ""
    extra: str = ""
    wckey: str = ""
    gpu_binding: str = ""
    mail_types: frozenset[str] = frozenset()
    mail_user: str = ""


class AssociationUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Decayed usage of an association or a QOS.

    It is in billing-seconds, seconds, and seconds of each TRES.
    """

    billing: float = 0.0
    wall: float = 0.0
    tres: Mapping[str, float] = {}


class ExpectedStart(NamedTuple):
    """Start that a pass expects for a pending job, in seconds since 1970, and its nodes."""

    at: int
    nodes: tuple[str, ...]


class HeldBy(Enum):
    """Holder of a job. Its owner can release only the first two kinds."""

    USER = "JobHeldUser"
    RESERVATION = "ReservationDeleted"
    ADMIN = "JobHeldAdmin"
    BANK = "bank"
    REQUEUES = "JobHoldMaxRequeue"


class NodeGrant(msgspec.Struct, frozen=True):
    """Resources of one node that a run has. Memory is in MiB."""

    binding: NodeBinding
    cpus: int
    memory: int
    gpus: tuple[Gpus, ...] = ()


class RunAllocation(msgspec.Struct, frozen=True):
    """Resources of a run. The first node runs the batch script."""

    partition: str
    grants: tuple[NodeGrant, ...]
    sharing: bool = False

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(grant.binding.node for grant in self.grants)

    @property
    def tres(self) -> dict[str, int]:
        """TRES of its nodes, by Slurm's names."""
        return {
            "cpu": sum(grant.cpus for grant in self.grants),
            "mem": sum(grant.memory for grant in self.grants),
            "node": len(self.grants),
            **gpu_counts(one for grant in self.grants for one in grant.gpus),
        }

    def placement(self, table: NodeTable, nodes: tuple[str, ...]) -> Placement:
        """Return what the run has of some of its nodes, for a scheduling pass."""
        shares = tuple(
            NodeShare(table.place[grant.binding.node], grant.cpus, grant.memory, grant.gpus)
            for grant in self.grants
            if grant.binding.node in nodes
        )
        places = node_set.of(share.place for share in shares)
        return Placement(places, shares, self.partition, self.sharing)


class WlmRun(msgspec.Struct, frozen=True, kw_only=True):
    """Run of a job that has, or had, nodes.

    allocated   time of its allocation
    is_allowed  the start was sent to its nodes: the bank allowed it, or there is no bank
    started     its begin on the batch node, from which its limit counts
    ended       time at which its script ended, or its end was decided: its processes may live on
    end         final state, or REQUEUED; empty: it has not ended
    status      exit status of wait(2)
    failure     why its script could not be started, or was ended; empty: nothing went wrong
    left        nodes that are not cleared: processes or an epilog may run there
    grace_ends  monotonic time at which it is ended, because it is preempted
    is_warned   the signal that its job asked for before the limit was sent: it comes once
    steps       number of the steps that it has had
    derived     highest status of a step that has ended
    suspended   begin of its suspension, also if it has ended since; `mono` moves on with what
                `paused` has of it
    resumed     end of the last suspension
    paused      seconds of suspensions, which are no part of the time that it ran
    """

    run: Run
    allocation: RunAllocation
    allocated: Moment
    is_allowed: bool = False
    started: Moment | None = None
    ended: Moment | None = None
    end: str = ""
    status: int = 0
    failure: str = ""
    left: tuple[str, ...] = ()
    grace_ends: int | None = None
    is_warned: bool = False
    steps: int = 0
    derived: int = 0
    suspended: Moment | None = None
    resumed: Moment | None = None
    paused: int = 0

    @property
    def batch_node(self) -> str:
        return self.allocation.nodes[0]

    @property
    def elapsed(self) -> int:
        """Seconds that it ran; 0 for a run that has not ended."""
        return 0 if self.ended is None else self.ran(self.ended)

    def ran(self, now: Moment) -> int:
        """Return for how many seconds it has run, or ran if it has ended."""
        end = self.ended or now
        if self.started is None:
            return 0
        return max(end.mono - self.started.mono - self.paused_until(now), 0)

    def paused_until(self, now: Moment) -> int:
        """Return for how many seconds it was suspended until now."""
        end = self.ended or now
        # It may have ended before its suspension: the controller hears of ends later.
        paused = 0 if self.suspended is None else max(end.mono - self.suspended.mono, 0)
        return self.paused + paused

    @property
    def ran_before(self) -> int:
        """Seconds that it had run when its last suspension began."""
        last = self.suspended or self.resumed
        if last is None or self.started is None:
            return 0
        return last.mono - self.started.mono - self.paused


_PASSING_REASONS = frozenset({"Cleaning", "None", "Priority", "Prolog", "Resources"})
"""Reasons that sacct does not show of a job, since they block nothing but its turn."""


class Owner(NamedTuple):
    """Process of srun or salloc that uses the nodes of a job, or follows a step.

    `start` is in clock ticks after the boot; 0: it had ended before it could be seen.
    """

    pid: int
    start: int
    boot: str


class WlmJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job, or the tasks of an array that have not started (`tasks`).

    request          the job as passes see it; its `held` is None, see `hold_reason`
    held_by          None: it is not held; of a running job, when it has been requeued
    reason           reason of the last pass, or of the end; see `shown_reason`
    admin_comment    the bank's sentence for a job that it holds
    restarts         number of the run that is waiting, running or ended
    exit_status      status of a script that had ended by itself before the job was requeued
    has_fixed_priority  an operator has set it
    accrued          time since when it ages under a limit on accrual, 0: not yet
    launch_failures  number of launches that failed in a row
    run              its run with nodes, perhaps an earlier one that is being cleaned up
    ended            time at which the controller knew of its end
    canceller        uid of the user who cancelled it
    waited_for       reason for which it waited last, but for the passing ones
    eligible_since   time since which it is neither held nor depends on others; 0: never yet
    owner            process without which it is of no use; None: there is none
    """

    request: PendingJob
    submission: Submission
    state: JobState = JobState.PENDING
    tasks: tuple[int, ...] = ()
    dependencies: Dependencies = Dependencies()
    held_by: HeldBy | None = None
    reason: str = "None"
    admin_comment: str = ""
    restarts: int = 0
    exit_status: int = 0
    has_fixed_priority: bool = False
    accrued: int = 0
    launch_failures: int = 0
    run: WlmRun | None = None
    ended: Moment | None = None
    canceller: int | None = None
    waited_for: str = "None"
    eligible_since: int = 0
    owner: Owner | None = None

    @property
    def number(self) -> int:
        return self.request.number

    @property
    def name(self) -> str:
        """Job id as squeue shows it."""
        if self.tasks:
            return record_name(self.number, self.tasks, self.request.throttle)
        return self.request.name

    @property
    def hold_reason(self) -> str | None:
        """Reason why it may not start yet, whatever is free and whatever the time is."""
        if self.held_by is not None:
            return self.reason if self.held_by is HeldBy.BANK else self.held_by.value
        if self.state.is_completing:
            return "Cleaning"
        return wait_reason(self.dependencies)

    def is_eligible(self, now: int) -> bool:
        """Return True if only its place in the queue, limits and nodes decide when it starts."""
        return self.hold_reason is None and self.request.eligible <= now

    @property
    def active_run(self) -> WlmRun | None:
        """Run whose end has not been decided."""
        return None if self.run is None or self.run.end else self.run

    def uses_partition(self, name: str) -> bool:
        """Return True if it may start in a partition, or has nodes there."""
        if self.run is not None and self.run.left and self.run.allocation.partition == name:
            return True
        return not self.state.has_ended and name in self.request.partitions

    def identity(self, cluster: str) -> Run:
        """Return the identity of its run that is waiting, running or ended."""
        return Run(cluster, self.number, self.request.submitted, self.restarts)

    def shown_reason(self, now: int) -> str:
        """Return the reason that squeue shows at a time in seconds since 1970."""
        if self.active_run is not None and self.held_by is not None:
            return self.held_by.value
        if self.state.base != "PENDING":
            return self.reason
        begin = "BeginTime" if self.request.eligible > now else None
        return self.hold_reason or begin or self.reason

    def with_wait(self, now: int) -> WlmJob:
        """Return the job with why it waits and since when it may start, for accounting."""
        if self.state.base != "PENDING":
            return self
        reason, since = self.shown_reason(now), self.eligible_since
        if reason in _PASSING_REASONS:
            reason = self.waited_for
        if not since and self.hold_reason is None:
            since = now
        if (reason, since) == (self.waited_for, self.eligible_since):
            return self
        return msgspec.structs.replace(self, waited_for=reason, eligible_since=since)

    def for_dependencies(self) -> DependencyJob:
        """Return the job as other jobs depend on it."""
        request, run = self.request, self.run
        started = self.ended if run is None or run.started is None else run.started
        return DependencyJob(
            self.number,
            request.user,
            self.submission.name,
            _progress(self.state),
            None if started is None else started.wall,
            request.array,
            request.task if request.task >= 0 else None,
            self.tasks,
        )


def _progress(state: JobState) -> Progress:
    if state.base in ("RUNNING", "SUSPENDED"):
        return Progress.RUNNING
    if state.has_ended and state.is_completing:
        return Progress.COMPLETING
    if state.has_ended:
        return Progress.COMPLETED if state.base == "COMPLETED" else Progress.FAILED
    return Progress.SPECIAL_EXIT if "SPECIAL_EXIT" in state.flags else Progress.PENDING


class EndedRun(msgspec.Struct, frozen=True, kw_only=True):
    """Accounting record of a run, which is written once. `run` is None if it never had nodes.

    `reason` is why it waited last, `eligible_since` that of its job.
    """

    identity: Run
    request: PendingJob
    submission: Submission
    state: str
    reason: str
    ended: int
    tasks: tuple[int, ...] = ()
    canceller: int | None = None
    run: WlmRun | None = None
    eligible_since: int = 0
