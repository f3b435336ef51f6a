"""A job that waits for nodes, and one that has some, as the passes over nodes see them."""

from __future__ import annotations

import msgspec

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput
from fairbank.scheduling.machines.machine import RunningJob
from fairbank.scheduling.placement.free_resources import Placement

YEAR = 365 * 86_400
"""Seconds: how long a job may run where neither it nor its partition says so: a year, as Slurm plans for it."""


class PendingJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waits. Times are seconds.

    number         what no other job has; a task of an array has one of its own, beside the number of the `array` and of the `task`
    partitions     where it may run: an entry of the queue for each, with the priority at its place in `priorities`, or else `priority`
    limit          None: the partition's
    time_min       it would rather start now with a limit down to this than later with `limit`
    eligible       from when on it may start (`--begin`)
    held           why nobody may start it yet, in Slurm's word: JobHeldUser, Dependency, ...; None where it may
    expedited      it was requeued to go before everybody

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
        """As squeue has it: a task of an array by the array's number and its own."""
        return (
            str(self.number) if self.array is None or self.task < 0 else f"{self.array}_{self.task}"
        )

    def seconds(self, rules: PartitionRules) -> int:
        """How long it may run there."""
        return min(filter(None, (self.limit, rules.max_seconds)), default=YEAR)

    def within(self, partition: str) -> PendingJob:
        """The same, as a job of one of its partitions alone."""
        at = self.partitions.index(partition)
        priorities = self.priorities[at : at + 1]
        return msgspec.structs.replace(self, partitions=(partition,), priorities=priorities)

    def least_seconds(self, rules: PartitionRules) -> int:
        """How long it must be able to run at least."""
        seconds = self.seconds(rules)
        return min(self.time_min or seconds, seconds)


Active = RunningJob[PendingJob, Placement]
"""A job that runs on nodes."""


def to_running(job: PendingJob, placement: Placement, now: int, seconds: int) -> Active:
    """The job from now on, for so many seconds at most."""
    return RunningJob(now + seconds, job.number, placement, job, now)
