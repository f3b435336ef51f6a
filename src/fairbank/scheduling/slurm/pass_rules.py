"""Rules of Slurm's two passes that ask nothing of the machine, for nodes and for processors alike: who is looked at, whose place others
keep off, and until when whoever runs is expected to.

Source: docs/reference/slurm-rules.md, "Main scheduler" and "Backfill".
"""

from __future__ import annotations

from collections.abc import Hashable

from fairbank.scheduling.slurm.parameters import SchedulerParameters

KILL_WAIT = 30
"""Seconds: what slurmctld leaves a job whose time is over between SIGTERM and SIGKILL (KillWait, as it is where nobody sets it)."""


class JobCaps:
    """Of each kind the first so many, one cap for each way to divide jobs into kinds; 0: all."""

    __slots__ = ("_most", "_seen")

    def __init__(self, *most: int) -> None:
        self._most = most
        self._seen: list[dict[Hashable, int]] = [{} for _ in most]

    def __bool__(self) -> bool:
        return any(self._most)

    def takes(self, *kinds: Hashable) -> bool:
        """Whether the next one is looked at, which is of these kinds. It counts in each up to the first that has had enough."""
        for kind, most, seen in zip(kinds, self._most, self._seen, strict=True):
            if most:
                seen[kind] = seen.get(kind, 0) + 1
                if seen[kind] > most:
                    return False
        return True


def main_caps(asked: SchedulerParameters) -> JobCaps:
    """Of whom the main pass looks at no more, by partition: in a full pass too."""
    return JobCaps(asked.partition_job_depth)


def backfill_caps(asked: SchedulerParameters) -> JobCaps:
    """Of whom backfill looks at no more: by whose they are, by partition, and by the user in the partition."""
    return JobCaps(
        asked.bf_max_job_assoc or asked.bf_max_job_user,
        asked.bf_max_job_part,
        asked.bf_max_job_user_part,
    )


def kinds(
    asked: SchedulerParameters, user: Hashable, account: Hashable, partition: Hashable
) -> tuple[Hashable, Hashable, Hashable]:
    """What backfill's caps count a job as. An association is a user in an account."""
    return (user, account) if asked.bf_max_job_assoc else user, partition, (user, partition)


def holds_up(asked: SchedulerParameters, waited: int, priority: int | None = None) -> bool:
    """Whether others keep off the place of a job that does not fit: not for the young and the low. None: nobody is too low."""
    return waited >= asked.bf_min_age_reserve and (
        priority is None or priority >= asked.bf_min_prio_reserve
    )


def expected_end(ends: int, now: int) -> int:
    """When whoever runs is gone: at its limit; beyond it when it will have been killed, and else any second."""
    return ends if ends > now else max(ends + KILL_WAIT, now + 1)
