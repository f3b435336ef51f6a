"""How well runs used what they held: the processors that they were given, beside the time that these were busy."""

from __future__ import annotations

from typing import NamedTuple

from fairbank.bank.run import RunRecord

EARLY_SECONDS = 120
EARLY_OUTCOMES = frozenset({"FAILED", "OUT_OF_MEMORY"})
"""A run that ends so within EARLY_SECONDS of its start failed early: more likely something is amiss with its script than with its work."""


class Efficiency(NamedTuple):
    """Processor seconds that were used, of those that were given; and what was paid for the idle rest, in SU-minutes.

    All 0 for a run of which nobody told the processors or the time that they were busy.
    """

    used: int = 0
    given: int = 0
    wasted: int = 0


def efficiency(run: RunRecord) -> Efficiency:
    """Of one run. No more counts as used than was given. The busy part is taken to the nearest thousandth: databases count the same."""
    told = run.job_details
    if told is None or told.cpu_seconds is None:
        return Efficiency()
    given = (told.cpus or 0) * (run.elapsed_seconds or 0)
    if not given:
        return Efficiency()
    used = min(told.cpu_seconds, given)
    return Efficiency(
        used,
        given,
        (run.charged - run.refunded) * (1000 - (2000 * used + given) // (2 * given)) // 1000,
    )


def counted_of_more(run: RunRecord) -> int | None:
    """The processor seconds that count of a run of which more was told than its processors had; None where no more was told.

    A second beside is rounding. Beyond it something is other than it is told (a core of several hardware threads counts as one processor,
    a job uses more than it was given, or milliseconds were sent): nobody loses an end over that, but whoever told it is told so.
    """
    told = run.job_details
    if told is None or told.cpu_seconds is None or not told.cpus:
        return None
    elapsed = run.elapsed_seconds or 0
    return told.cpus * elapsed if told.cpu_seconds > told.cpus * (elapsed + 1) else None


def failed_early(run: RunRecord) -> bool:
    """Whether it failed within EARLY_SECONDS of its start."""
    return (
        run.outcome in EARLY_OUTCOMES
        and run.elapsed_seconds is not None
        and run.elapsed_seconds <= EARLY_SECONDS
    )
