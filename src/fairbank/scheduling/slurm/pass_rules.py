"""Rules of both passes that do not depend on the machine (slurm-rules.md, "Main scheduler",
"Backfill").

They say which jobs a pass tests, for which jobs it keeps resources, and when it expects running
jobs to end.
"""

from __future__ import annotations

from collections.abc import Hashable

from fairbank.scheduling.slurm.parameters import SchedulerParameters

KILL_WAIT = 30
"""Seconds between SIGTERM and SIGKILL for a job that is over its limit: default of KillWait."""


class JobCaps:
    """Maximum number of jobs with the same key, for each of several keys; 0: no maximum."""

    __slots__ = ("_most", "_seen")

    def __init__(self, *most: int) -> None:
        self._most = most
        self._seen: list[dict[Hashable, int]] = [{} for _ in most]

    def __bool__(self) -> bool:
        return any(self._most)

    def allow(self, *kinds: Hashable) -> bool:
        """Count a job with these keys and return True if all counts are within the maximum. Keys
        behind the first that is exceeded are not counted, as in Slurm.
        """
        for kind, most, seen in zip(kinds, self._most, self._seen, strict=True):
            if most:
                seen[kind] = seen.get(kind, 0) + 1
                if seen[kind] > most:
                    return False
        return True


def main_caps(parameters: SchedulerParameters) -> JobCaps:
    """Return the caps of the main pass, by partition. They hold in a full pass, too."""
    return JobCaps(parameters.partition_job_depth)


def backfill_caps(parameters: SchedulerParameters) -> JobCaps:
    """Return the caps of backfill: by user or association, by partition, and by user in a
    partition.
    """
    return JobCaps(
        parameters.bf_max_job_assoc or parameters.bf_max_job_user,
        parameters.bf_max_job_part,
        parameters.bf_max_job_user_part,
    )


def cap_keys(
    parameters: SchedulerParameters, user: Hashable, account: Hashable, partition: Hashable
) -> tuple[Hashable, Hashable, Hashable]:
    """Return the keys of a job for the caps of backfill. An association is a user in an account."""
    return (user, account) if parameters.bf_max_job_assoc else user, partition, (user, partition)


def can_reserve(parameters: SchedulerParameters, waited: int, priority: int | None = None) -> bool:
    """Return True if a job that does not fit keeps resources from the jobs behind it. Jobs that are
    too young or too low do not.

    Args:
        parameters: SchedulerParameters of slurm.conf.
        waited: seconds since the job became eligible.
        priority: priority of the job; None: do not compare it.
    """
    return waited >= parameters.bf_min_age_reserve and (
        priority is None or priority >= parameters.bf_min_prio_reserve
    )


def expected_end(ends: int, now: int) -> int:
    """Return the time when a running job is gone: at its limit; over the limit when it will have
    been killed, or in a second.
    """
    return ends if ends > now else max(ends + KILL_WAIT, now + 1)
