"""Reason why a job waits, in one sentence with Slurm's word for it."""

from __future__ import annotations

from fairbank.cluster.dependency import Dependencies, DependencyState
from fairbank.core.time import iso
from fairbank.scheduling.explain.checks import least_nodes
from fairbank.scheduling.explain.dependencies import OpenDependencies, describe_condition
from fairbank.scheduling.explain.job_view import JobView
from fairbank.scheduling.plan import PRIORITY, RESOURCES
from fairbank.scheduling.reason import explain_reason

DEPENDENCY, NEVER_MET = "Dependency", "DependencyNeverSatisfied"


def headline_of(view: JobView, awaiting: OpenDependencies | None) -> str:
    """Return the sentence, with the figures of this job if it waits for nodes or for other jobs."""
    expected = (
        f" Room is kept for it at {iso(view.reservation.at)}."
        if view.reservation is not None
        else ""
    )
    return f"Job {view.job.name} {_waits(view, awaiting)} ({view.code}).{expected}"


def _waits(view: JobView, awaiting: OpenDependencies | None) -> str:
    if view.code == RESOURCES and view.is_queued:
        return _for_nodes(view)
    if view.code == PRIORITY and view.ahead:
        first = f"job {view.names[view.ahead[0]]}"
        return (
            f"waits behind {first}"
            if len(view.ahead) == 1
            else f"waits behind {len(view.ahead):,} jobs, first of them {first}"
        )
    if view.code in (DEPENDENCY, NEVER_MET) and awaiting is not None and awaiting.on.open:
        return _for_others(awaiting.on, never=view.code == NEVER_MET)
    return f"waits: {explain_reason(view.code).removesuffix('.')}"


def _for_nodes(view: JobView) -> str:
    """Describe the partition in which the job is nearest to its start."""
    entry, found = max(view.filtered, key=lambda each: each[1].fitting.bit_count())
    free, able, least = (
        found.fitting.bit_count(),
        found.suitable.bit_count(),
        least_nodes(view.snapshot.machine, entry, found),
    )
    many = "1 node" if least == 1 else f"{least:,} nodes"
    return f"waits for {many}: {free:,} of the {able:,} that would do are free now"


def _for_others(on: Dependencies, *, never: bool) -> str:
    """Describe the first dependency that is open, or lost."""
    if never:
        lost = next((each for each in on.open if each.state is DependencyState.NEVER), on.open[0])
        return f"waits for what can never be any more, that {describe_condition(lost)}"
    first = describe_condition(on.open[0])
    if len(on.open) == 1:
        return f"waits until {first}"
    return f"waits for {'one of ' if on.any_of else ''}{len(on.open):,} dependencies, first of them that {first}"
