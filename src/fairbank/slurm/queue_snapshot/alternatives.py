"""Jobs that ask for one of several QOS or reservations. slurmctld has an entry of its queue for each; here one stands for all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from fairbank.cluster.reservation import Reservation
from fairbank.slurm.parsers.jobs import SlurmJob

LISTED = 5
"""So many jobs are named."""


def with_one_reservation(told: SlurmJob, reservations: Mapping[str, Reservation], now: int) -> SlurmJob:
    """The job in the reservation, of those that it asks for, in which it may start soonest; of several the first to begin."""
    names = _reservation_names(told)
    if len(names) < 2:
        return told
    return msgspec.structs.replace(
        told, reservation=min(names, key=lambda name: _rank(reservations.get(name), told, now))
    )


def _rank(found: Reservation | None, told: SlurmJob, now: int) -> tuple[int, int]:
    """Those in which it may start now, that are to come, that are over, that are for others, that are not there."""
    if found is None:
        return 4, 0
    if not found.is_for(told.user, told.account):
        return 3, found.begin
    if found.is_over(now):
        return 2, found.begin
    return 0 if found.is_active(now) or found.flexible else 1, found.begin


def simplification_notes(jobs: Iterable[SlurmJob]) -> Iterator[str]:
    """Which of those that wait are looked at in one way of several, in sentences."""
    waiting = [told for told in jobs if told.is_pending]
    yield from _job_note(
        "of several QOS only the first counts here", [each for each in waiting if each.other_qos]
    )
    yield from _job_note(
        "of several reservations only one counts here, the soonest",
        [each for each in waiting if len(_reservation_names(each)) > 1],
    )


def _reservation_names(told: SlurmJob) -> list[str]:
    return (told.reservation or "").split(",")


def _job_note(what: str, jobs: list[SlurmJob]) -> Iterator[str]:
    if jobs:
        names = ", ".join(each.squeue_name for each in jobs[:LISTED]) + (
            ", ..." if len(jobs) > LISTED else ""
        )
        yield f"{what}: job {names}"
