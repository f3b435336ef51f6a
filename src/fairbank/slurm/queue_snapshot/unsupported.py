"""Notes on settings and requests that the scheduler's model does not have, or simplifies.

slurmctld may decide otherwise for them, so each is named once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from fairbank.cluster.reservation import Reservation
from fairbank.scheduling.machines.node_rules import PreemptBy
from fairbank.scheduling.slurm.parameters import NOT_MODELLED
from fairbank.slurm.parsers.jobs import SlurmJob

PARAMETERS = "SchedulerParameters"

_SELECT = frozenset(
    "CR_LLN CR_ONE_TASK_PER_CORE CR_PACK_NODES CR_SOCKET CR_SOCKET_MEMORY LL_SHARED_GRES".split()
)
"""Ways to choose nodes other than by weight, position and single cores."""
_PREEMPT = frozenset(
    "min_exempt_priority reclaim_licenses reorder_count strict_order youngest_first".split()
)
_FLAT = frozenset({"", "(null)", "N/A", "none", "default", "flat"})


def unsupported_notes(config: Mapping[str, str], least_loaded: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each setting; `least_loaded` are the partitions that prefer such
    nodes.
    """
    yield from _setting_note(
        PARAMETERS, NOT_MODELLED.intersection(_names(config.get(PARAMETERS, "")))
    )
    yield from _setting_note(
        "SelectTypeParameters",
        _SELECT.intersection(map(str.upper, _names(config.get("SelectTypeParameters", "")))),
    )
    yield from _setting_note("LLN of partitions", least_loaded)
    topology = config.get("TopologyPlugin", "")
    yield from _setting_note(
        "TopologyPlugin", () if topology.removeprefix("topology/") in _FLAT else (topology,)
    )
    if config.get("PreemptType") in {PreemptBy.PARTITION.value, PreemptBy.QOS.value}:
        yield from _setting_note(
            "PreemptParameters", _PREEMPT.intersection(_names(config.get("PreemptParameters", "")))
        )


def _names(text: str) -> Iterator[str]:
    """Yield the names of `defer,bf_max_time=60` in lower case, since Slurm ignores it."""
    for word in text.lower().split(","):
        yield word.partition("=")[0].strip()


def _setting_note(setting: str, names: Iterable[str]) -> Iterator[str]:
    if listed := sorted(names):
        yield (
            f"{setting}: {', '.join(listed)}: not modelled here, so that slurmctld may decide"
            " otherwise"
        )


LISTED = 5
"""Jobs that a note names."""


def with_one_reservation(
    slurm_job: SlurmJob, reservations: Mapping[str, Reservation], now: int
) -> SlurmJob:
    """Return the job in the reservation in which it may start soonest; of several, the first to
    begin.

    slurmctld has an entry in its queue for each reservation; here one stands for all.
    """
    names = _reservation_names(slurm_job)
    if len(names) < 2:
        return slurm_job
    return msgspec.structs.replace(
        slurm_job,
        reservation=min(names, key=lambda name: _rank(reservations.get(name), slurm_job, now)),
    )


def _rank(reservation: Reservation | None, slurm_job: SlurmJob, now: int) -> tuple[int, int]:
    """Rank reservations: usable now, to come, over, for others, unknown."""
    if reservation is None:
        return 4, 0
    if not reservation.is_for(slurm_job.user, slurm_job.account):
        return 3, reservation.begin
    if reservation.is_over(now):
        return 2, reservation.begin
    return 0 if reservation.is_active(now) or reservation.flexible else 1, reservation.begin


def simplification_notes(jobs: Iterable[SlurmJob]) -> Iterator[str]:
    """Yield sentences on pending jobs of whose QOS or reservations only one counts here."""
    waiting = [slurm_job for slurm_job in jobs if slurm_job.is_pending]
    yield from _job_note(
        "of several QOS only the first counts here",
        [slurm_job for slurm_job in waiting if slurm_job.other_qos],
    )
    yield from _job_note(
        "of several reservations only one counts here, the soonest",
        [slurm_job for slurm_job in waiting if len(_reservation_names(slurm_job)) > 1],
    )


def _reservation_names(slurm_job: SlurmJob) -> list[str]:
    return (slurm_job.reservation or "").split(",")


def _job_note(sentence: str, jobs: list[SlurmJob]) -> Iterator[str]:
    if jobs:
        names = ", ".join(slurm_job.squeue_name for slurm_job in jobs[:LISTED]) + (
            ", ..." if len(jobs) > LISTED else ""
        )
        yield f"{sentence}: job {names}"
