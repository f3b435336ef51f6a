"""Pending and running jobs as the passes over nodes see them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.cluster.job import squeue_name
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.search import TIME_FLAG
from fairbank.scheduling.snapshot import RunningJob


class PendingJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job that waits for nodes. Times are in seconds.

        number         unique number; a task of an array has its own, besides `array` and `task`
        partitions     partitions where it may run; the queue has an entry for each, with the
                       priority at the same place in `priorities`, or else `priority`
        limit          time limit; None: the limit of the partition
        time_min       shortest limit that the job accepts to start now rather than later with
                       `limit`
        eligible       time from which it may start (`--begin`)
        held           Slurm's reason why it may not start yet: JobHeldUser, Dependency, ...; None
                       if it may
        expedited      requeued to go before all other jobs
        groups         Unix groups of its user; empty: unknown
        deadline       time by which it must have ended (`--deadline`)
        tres           requested TRES, which limits of accounting count
        licenses       requested licenses, by name
        throttle       number of tasks of its array that may run at once; None: any number
        qos_flags      flags of its QOS, in Slurm's words: some override limits of the partition
        least_fair_share
                       UsageThreshold of its QOS; None: none is enforced
        fair_share     what slurmctld compares with it; None: unknown
        is_privileged  root or SlurmUser has it
        submit_host    host from which it was submitted; empty: unknown
        het_job        number of the heterogeneous job of which it is a component
        het_offset     number of the component in it

    Raises InvalidInput, naming the field.
    """

    number: int
    array: int | None = None
    task: int = -1
    user: str = ""
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ("batch",)
    wanted: ResourceRequest = ResourceRequest()
    priority: int = 1
    priorities: tuple[int, ...] = ()
    submitted: int = 0
    eligible: int = 0
    limit: int | None = None
    time_min: int | None = None
    reservation: str | None = None
    held: str | None = None
    expedited: bool = False
    groups: tuple[str, ...] = ()
    deadline: int | None = None
    tres: Mapping[str, int] = {}
    licenses: Mapping[str, int] = {}
    throttle: int | None = None
    qos_flags: frozenset[str] = frozenset()
    least_fair_share: float | None = None
    fair_share: float | None = None
    is_privileged: bool = False
    submit_host: str = ""
    het_job: int | None = None
    het_offset: int = 0

    def __post_init__(self) -> None:
        for wrong, field, what, remedy in (
            (not self.partitions, "partitions", "no partition", "name one"),
            (
                bool(self.priorities) and len(self.priorities) != len(self.partitions),
                "priorities",
                "not one for each partition",
                "give each its own",
            ),
            (
                self.limit is not None and self.limit < 1,
                "limit",
                f"a limit of {self.limit} s",
                "a second or more",
            ),
            (
                self.time_min is not None and self.time_min < 1,
                "time_min",
                f"a limit of {self.time_min} s",
                "a second or more",
            ),
        ):
            if wrong:
                raise InvalidInput(f"job {self.number} has {what}", field=field, remedy=remedy)

    @property
    def name(self) -> str:
        """Return the job id as squeue shows it."""
        task = None if self.task < 0 else self.task
        return squeue_name(self.number, self.array, task, self.het_job, self.het_offset)

    def seconds(self, rules: PartitionRules) -> int:
        """Return how many seconds the job may run in a partition."""
        most = None if self.limit and TIME_FLAG in self.qos_flags else rules.max_seconds
        return min(filter(None, (self.limit, most)), default=UNLIMITED_SECONDS)

    def least_seconds(self, rules: PartitionRules) -> int:
        """Return how many seconds the job must be able to run at least."""
        seconds = self.seconds(rules)
        return min(self.time_min or seconds, seconds)


Active = RunningJob[PendingJob, Placement]
"""Job that runs on nodes."""


def to_running(job: PendingJob, placement: Placement, now: int, seconds: int) -> Active:
    """Return the job as one that starts now.

    Args:
        job: the pending job.
        placement: nodes that it gets.
        now: start in seconds since 1970.
        seconds: how long it runs at most.
    """
    return RunningJob(now + seconds, job.number, placement, job, now)
