"""Dependencies of a job on others, with the state of these, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from fairbank.cluster.dependency import Dependencies, Dependency, DependencyState
from fairbank.core.time import MINUTE, iso
from fairbank.scheduling.explain.answer import JobCheck


class JobStates(msgspec.Struct, frozen=True, kw_only=True):
    """State of the jobs on which a dependency is. Names are squeue's, times seconds since 1970.

    running    names of those that run; `began`: start of the last, `ends`: latest end, None without
               a limit
    waiting    names of those that wait, and `reason`: Slurm's reason of the first
    ended      states of those that ended lately
    """

    running: tuple[str, ...] = ()
    began: int | None = None
    ends: int | None = None
    waiting: tuple[str, ...] = ()
    reason: str = ""
    ended: tuple[str, ...] = ()


class OpenDependencies(msgspec.Struct, frozen=True):
    """Dependencies of a job, with the state of the other jobs for each."""

    on: Dependencies
    seen: tuple[JobStates, ...] = ()


def dependency_check(awaiting: OpenDependencies) -> JobCheck:
    """Check that other jobs have come as far as they must."""
    on = awaiting.on
    if on.text and not on.items:
        return JobCheck("dependencies", on.is_met, f"they cannot be parsed: {on.text}")
    evidence = [
        f"{describe_condition(dependency)}: {_how_far(dependency, seen)}"
        for dependency, seen in zip(on.items, awaiting.seen, strict=True)
    ]
    if on.any_of and len(evidence) > 1:
        evidence[0] = f"one of these is enough: {evidence[0]}"
    if on.is_unmeetable:
        evidence.append(
            "so it will never start: cancel it, or change the dependency (scontrol update)"
        )
    return JobCheck("dependencies", on.is_met, "; ".join(evidence) or "none is open")


def describe_condition(on: Dependency) -> str:
    """Return the condition as a sentence without its full stop."""
    one, whole = _KINDS.get(on.kind, (f"{on.kind} {{}}",) * 2)
    if on.minutes:
        one = whole = (
            f"{'1 minute has' if on.minutes == 1 else f'{on.minutes:,} minutes have'} passed since"
            " {} started"
        )
    if on.all_tasks:
        return whole.format(f"array {on.job}")
    return one.format(f"job {on.job}" if on.task is None else f"job {on.job}_{on.task}")


def _how_far(on: Dependency, seen: JobStates) -> str:
    if on.state is DependencyState.YES:
        return _MET[on.state]
    return ", ".join((_MET[on.state], *_now(on, seen)))


def _now(on: Dependency, seen: JobStates) -> Iterator[str]:
    """Yield what the other jobs do now."""
    one = "it" if on.job is not None and not on.all_tasks else None
    if on.minutes and seen.began is not None and not seen.waiting:
        yield f"that is at {iso(seen.began + on.minutes * MINUTE)}"
    elif seen.running:
        runs = f"{one or _names(seen.running)} {'runs' if len(seen.running) == 1 else 'run'}"
        yield (
            f"{runs} without a time limit"
            if seen.ends is None
            else f"{runs} until {iso(seen.ends)} at the latest"
        )
    if seen.waiting:
        yield (
            f"{one or _names(seen.waiting)} {'waits' if len(seen.waiting) == 1 else 'wait'}"
            f" ({seen.reason})"
        )
    for state, many in sorted(Counter(seen.ended).items()):
        yield f"{one or f'{many:,}'} ended as {state}"
    if on.job is not None and not (seen.running or seen.waiting or seen.ended):
        yield f"{'it is not' if one else 'none of its tasks is'} in the queue any more"


def _names(jobs: Sequence[str]) -> str:
    return f"job {jobs[0]}" if len(jobs) == 1 else f"job {jobs[0]} and {len(jobs) - 1:,} more"


_MET = {
    DependencyState.YES: "done",
    DependencyState.NOT_YET: "not yet",
    DependencyState.NEVER: "can never be satisfied",
}
# Of a job or one task, and of an array as a whole.
_KINDS = {
    "after": ("{} has started or was cancelled", "every task of {} has started or was cancelled"),
    "afterany": ("{} has ended", "every task of {} has ended"),
    "afterburstbuffer": (
        "{} has ended and its files were copied",
        "every task of {} has ended and its files were copied",
    ),
    "aftercorr": ("{} has completed", "the same task of {} has completed"),
    "afternotok": ("{} has failed", "every task of {} has ended, and some have failed"),
    "afterok": ("{} has completed", "every task of {} has completed"),
    "expand": (
        "{} is running, so that it can be expanded",
        "{} is running, so that it can be expanded",
    ),
    "singleton": ("no other job of this name and user is running or ahead of it",) * 2,
}
