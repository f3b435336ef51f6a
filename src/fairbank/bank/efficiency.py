"""Efficiency of runs: processor time used, compared with the processors that a run had."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from fairbank.bank.run import RunRecord

EARLY_SECONDS = 120
EARLY_OUTCOMES = frozenset({"FAILED", "OUT_OF_MEMORY"})
"""Final states of a run that failed early if it ends within EARLY_SECONDS of its start. The cause
is more likely its script than its computation.
"""


class Efficiency(NamedTuple):
    """Processor seconds used, processor seconds given, and the charge for the rest in SU-minutes.

    All are 0 if the number of processors or the used time was not reported.
    """

    used: int = 0
    given: int = 0
    wasted: int = 0


def efficiency(run: RunRecord) -> Efficiency:
    """Return the efficiency of a run."""
    details, end = run.reported.job_details, run.end
    if details is None or details.cpu_seconds is None or end is None:
        return Efficiency()
    given = (details.cpus or 0) * end.elapsed_seconds
    return efficiency_of(details.cpu_seconds, given, run.charged - run.refunded)


def efficiency_of(used: int, given: int, paid: int) -> Efficiency:
    """Return the efficiency of a run; all its figures are 0 if `given` is 0.

    Args:
        used: processor seconds that the run used; at most `given` count.
        given: processor seconds that it had: processors times elapsed time. 0 if not known.
        paid: charge without refunds in SU-minutes.
    """
    if not given:
        return Efficiency()
    used = min(used, given)
    return Efficiency(used, given, idle_part(paid, used, given))


def enough_cpus(used: int, elapsed: int, cpus: int) -> int:
    """Return the processors that would have done the work of a run in the same time, if the run
    can use any number of them.

    Args:
        used: processor seconds that it used.
        elapsed: seconds that it took, not 0.
        cpus: processors that it had.

    >>> enough_cpus(5, 10, 4), enough_cpus(21, 10, 4), enough_cpus(0, 10, 4)
    (1, 3, 1)
    """
    return max(1, min(cpus, -(-used // elapsed)))


def enough_gpus(busy: float, elapsed: int, gpus: int) -> int:
    """Return the GPUs that would have done the work of a run in the same time, if the run can use
    any number of them; 0 if none was ever busy.

    Args:
        busy: seconds for which its GPUs were busy, all together.
        elapsed: seconds that it took, not 0.
        gpus: GPUs that it had.

    >>> enough_gpus(5.0, 10, 4), enough_gpus(21.0, 10, 4), enough_gpus(0.0, 10, 4)
    (1, 3, 0)
    """
    return min(gpus, ceil(busy / elapsed))


def idle_part(paid: int, used: int, given: int) -> int:
    """Return the part of a charge for idle processors, rounded to whole SU-minutes.

    In doubles, as the SQL of the stores computes it: integer products would exceed 64 bits.

    Args:
        paid: charge in SU-minutes.
        used: processor seconds used, at most `given`.
        given: processor seconds given, not 0.

    >>> idle_part(13_444, 626_944, 806_624)
    2995
    """
    return int(float(paid) * (given - used) / given + 0.5)


def counted_of_more(run: RunRecord) -> int | None:
    """Return the processor seconds that count if a report has more than the processors could use.

    One second more is rounding. More than that is a wrong report: hardware threads counted as
    processors, or milliseconds sent as seconds. The report still counts, and the answer says so.
    Returns None if the report is plausible.
    """
    details, end = run.reported.job_details, run.end
    if details is None or details.cpu_seconds is None or not details.cpus or end is None:
        return None
    elapsed = end.elapsed_seconds
    return details.cpus * elapsed if details.cpu_seconds > details.cpus * (elapsed + 1) else None


def is_early_failure(run: RunRecord) -> bool:
    """Return whether the run failed within EARLY_SECONDS of its start."""
    end = run.end
    return (
        end is not None and end.outcome in EARLY_OUTCOMES and end.elapsed_seconds <= EARLY_SECONDS
    )
