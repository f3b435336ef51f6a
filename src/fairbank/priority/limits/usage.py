"""Limits and usage of associations and QOS, and the job that would start."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import STATIC_TRES, UNLIMITED_MINUTES
from fairbank.priority.limits.reasons import ASSOC, QOS, LimitKind, reason

Counts = Mapping[str, int]
"""Amount of each TRES, by its name in lower case."""


def in_order(limits: Counts) -> Iterator[tuple[str, int]]:
    """Yield limits in the order in which Slurm tests them: its own TRES first, others as given.
    Energy is never limited.
    """
    for name in sorted(
        limits,
        key=lambda name: STATIC_TRES.index(name) if name in STATIC_TRES else len(STATIC_TRES),
    ):
        if name != "energy":
            yield name, limits[name]


def _check(field: str, amounts: Mapping[str, float]) -> None:
    for name, amount in amounts.items():
        if not 0 <= amount < math.inf:
            remedy = "a number from 0 up; leave out what is not limited"
            raise InvalidInput(
                f"{name}={amount} is out of range", field=f"{field}[{name}]", remedy=remedy
            )


class AssociationLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of an association or QOS, by sacctmgr's names. What is absent is not limited. Times
    are in minutes.

    `jobs` and `wall` are on no TRES: GrpJobs, MaxJobs, MaxSubmitJobs and so on; GrpWall, MaxWall.
    Raises InvalidInput for a negative limit.
    """

    tres: Mapping[LimitKind, Counts] = {}
    jobs: Mapping[LimitKind, int] = {}
    wall: Mapping[LimitKind, int] = {}

    def __post_init__(self) -> None:
        for kind, limits in self.tres.items():
            _check(kind.value, limits)
        for by_kind in (self.jobs, self.wall):
            _check("limit", {kind.value: limit for kind, limit in by_kind.items()})


class LimitUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage by the jobs of an owner.

    `jobs` run, `submitted` run or wait. `counts`: TRES of running jobs. `seconds`: TRES-seconds so
    far, decayed. `run_seconds`: TRES-seconds that running jobs may still take. `nodes`: nodes of
    running jobs.
    """

    jobs: int = 0
    submitted: int = 0
    wall_seconds: float = 0.0
    counts: Counts = {}
    seconds: Mapping[str, float] = {}
    run_seconds: Counts = {}
    nodes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _check("used", {"jobs": self.jobs, "submitted": self.submitted, "wall": self.wall_seconds})
        for field, amounts in (
            ("counts", self.counts),
            ("seconds", self.seconds),
            ("run_seconds", self.run_seconds),
        ):
            _check(field, amounts)

    def minutes(self) -> dict[str, int]:
        """Return whole minutes so far."""
        return {name: int(seconds / 60) for name, seconds in self.seconds.items()}

    def run_minutes(self) -> dict[str, int]:
        return {name: seconds // 60 for name, seconds in self.run_seconds.items()}

    def wall_minutes(self) -> int:
        return int(self.wall_seconds / 60)


class LimitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Association or QOS with its limits, and their decayed usage by ended jobs.

    `parent` is the account above an association; a QOS has only a name.
    """

    name: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    limits: AssociationLimits = AssociationLimits()
    used: LimitUsage = LimitUsage()


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """Level from a user's association to root. The user's own has the inherited limits."""

    name: str
    limits: AssociationLimits = AssociationLimits()
    used: LimitUsage = LimitUsage()


class QosLimits(msgspec.Struct, frozen=True, kw_only=True):
    """QOS as one job sees it. `of_user` and `of_account` are the usage of this user and this
    account.

    `usage_factor` -1: it was cleared. `over_partition`: it goes before the QOS of the partition
    (OverPartQOS). `usage_factor_safe`: limits see jobs as long as they will be charged.
    `deny_on_limit`: refuse at submission what can never start. `limit_factor` multiplies GrpTRES
    and MaxTRES of associations.
    """

    name: str
    limits: AssociationLimits = AssociationLimits()
    used: LimitUsage = LimitUsage()
    of_user: LimitUsage = LimitUsage()
    of_account: LimitUsage = LimitUsage()
    usage_factor: float = 1.0
    usage_factor_safe: bool = False
    over_partition: bool = False
    deny_on_limit: bool = False
    limit_factor: float | None = None


class LimitedJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job that would start, with the selected resources or, before the selection, the requested
    ones.

    `limit_minutes`: None without a limit, UNLIMITED_MINUTES if the job requested that. `chain`: its
    associations, the user's own first. `overridden`: TRES whose limits an administrator set aside
    for it; `time_overridden`: likewise for its time. `is_placed`: `nodes` are selected.
    """

    counts: Counts
    chain: tuple[Link, ...]
    limit_minutes: int | None = None
    partition_max_minutes: int = UNLIMITED_MINUTES
    partition_default_minutes: int | None = None
    nodes: frozenset[str] = frozenset()
    qos: QosLimits | None = None
    partition_qos: QosLimits | None = None
    overridden: frozenset[str] = frozenset()
    time_overridden: bool = False
    is_placed: bool = True

    def qoses(self) -> tuple[QosLimits, ...]:
        """Return the QOS whose limits hold, in order of precedence."""
        job, partition = self.qos, self.partition_qos
        if job is None or partition is None or job.name == partition.name:
            return tuple(qos for qos in (partition or job,) if qos)
        return (job, partition) if job.over_partition else (partition, job)

    def usage_factor(self) -> float:
        return self.qos.usage_factor if self.qos and self.qos.usage_factor >= 0 else 1.0

    def charged(self, minutes: int) -> int:
        """Return a time limit as long as it will be charged, if the QOS of the job requires it."""
        factor = self.usage_factor()
        if self.qos and self.qos.usage_factor_safe and (minutes != UNLIMITED_MINUTES or factor < 1):
            return min(int(minutes * factor), UNLIMITED_MINUTES)
        return minutes

    def minutes_at_most(self, *limits: int | None) -> int:
        """Return the time limit, else the lowest of these and the partition's."""
        if self.limit_minutes is not None:
            return self.limit_minutes
        return min(
            self.partition_max_minutes,
            *(UNLIMITED_MINUTES if limit is None else limit for limit in limits),
        )


class LimitTest(msgspec.Struct, frozen=True, kw_only=True):
    """Test of the limit of `name` (an association or QOS) for one job, and the figures compared.

    `used` was taken before, `running` is what running jobs take or may still take, `requested`
    is the job's own. `holds`: the limit keeps the job from starting, refuses it or ends it.
    """

    owner: str
    name: str
    kind: LimitKind
    limit: int
    requested: int
    tres: str | None = None
    used: int = 0
    running: int = 0
    holds: bool = True

    @property
    def reason(self) -> str:
        """Return the reason as squeue prints it."""
        return reason(self.owner, self.kind, self.tres)

    def __str__(self) -> str:
        where = {ASSOC: "association", QOS: "QOS"}[self.owner]
        unit = _unit(self.kind, self.tres, is_one=self.limit == 1)
        least = "at least " if self.kind is LimitKind.MIN_TRES else ""
        amounts = [
            f"{amount:,} {word}"
            for amount, word in ((self.used, "used"), (self.running, _running(self.kind)))
            if amount
        ]
        beside = f", {' and '.join(amounts)}" if amounts else ""
        return (
            f"{where} {self.name} allows {_SCOPES.get(self.kind, '')}{least}{self.limit:,} {unit}"
            f" ({self.kind.value}){beside}; this job asks for {self.requested:,}"
        )


# Whom the limit is for; without a word all jobs of the owner together.
_SCOPES = {
    LimitKind.MAX_TRES: "each job ",
    LimitKind.MAX_TRES_PER_NODE: "each node of a job ",
    LimitKind.MAX_TRES_MINS: "each job ",
    LimitKind.MIN_TRES: "each job ",
    LimitKind.MAX_WALL: "each job ",
    LimitKind.MAX_TRES_PER_USER: "each user ",
    LimitKind.MAX_TRES_RUN_MINS_PER_USER: "each user ",
    LimitKind.MAX_JOBS_PER_USER: "each user ",
    LimitKind.MAX_SUBMIT_JOBS_PER_USER: "each user ",
    LimitKind.MAX_TRES_PER_ACCOUNT: "each account ",
    LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT: "each account ",
    LimitKind.MAX_JOBS_PER_ACCOUNT: "each account ",
    LimitKind.MAX_SUBMIT_JOBS_PER_ACCOUNT: "each account ",
}
MINUTE_KINDS = frozenset(
    {
        LimitKind.GRP_TRES_MINS,
        LimitKind.GRP_TRES_RUN_MINS,
        LimitKind.MAX_TRES_MINS,
        LimitKind.MAX_TRES_RUN_MINS_PER_USER,
        LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT,
    }
)
"""Limits on products of a TRES and minutes."""
_WALL = frozenset({LimitKind.GRP_WALL, LimitKind.MAX_WALL})
# One unit of a TRES and several, and likewise of its product with minutes. Others are called by
# their names.
_UNITS = {
    "cpu": (("CPU", "CPUs"), ("CPU-minute", "CPU-minutes")),
    "mem": (("MiB of memory",) * 2, ("MiB-minute of memory", "MiB-minutes of memory")),
    "node": (("node", "nodes"), ("node-minute", "node-minutes")),
    "billing": (("billing unit", "billing units"), ("billing unit-minute", "billing unit-minutes")),
}


def _unit(kind: LimitKind, tres: str | None, *, is_one: bool) -> str:
    if tres is None:
        one, several = ("minute of wall time", "minutes of wall time")
        if kind not in _WALL:
            one, several = "job", "jobs"
    else:
        other = ((tres, tres), (f"minute of {tres}", f"minutes of {tres}"))
        one, several = _UNITS.get(tres, other)[kind in MINUTE_KINDS]
    return one if is_one else several


def _running(kind: LimitKind) -> str:
    return "reserved by running jobs" if kind in MINUTE_KINDS else "in use"
