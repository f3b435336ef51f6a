"""What a group of runs used, as SQL: the figures of `store.usage.of_figures`, in that order."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, case, func

from fairbank.bank.efficiency import EARLY_OUTCOMES, EARLY_SECONDS
from fairbank.cluster.job import COMPLETED
from fairbank.store.schema import run
from fairbank.store.usage import UNTOLD

_r = run.c
_GIVEN = _r.cpus * _r.elapsed_seconds
_MEASURED = and_(_r.cpu_seconds.is_not(None), _GIVEN > 0)
_BUSY = case((_r.cpu_seconds < _GIVEN, _r.cpu_seconds), else_=_GIVEN)
_EARLY = and_(_r.outcome.in_(sorted(EARLY_OUTCOMES)), _r.elapsed_seconds <= EARLY_SECONDS)
_PAID = _r.charged - _r.refunded
_EXIT = func.coalesce(_r.exit_status, UNTOLD)


def _sum(figure: ColumnElement[Any] | int, of: ColumnElement[bool]) -> ColumnElement[Any]:
    """The sum over the runs that this is true of. No other is counted at all: its given time may be nothing, and divide by nothing."""
    return func.sum(case((of, figure), else_=0))


FIGURES: tuple[ColumnElement[Any], ...] = (
    func.count(),
    func.sum(case((_r.outcome == COMPLETED, 0), else_=1)),
    func.sum(_PAID),
    func.sum(_r.elapsed_seconds),
    _sum(_r.start_at - _r.submitted, _r.start_at > _r.submitted),
    _sum(_BUSY, _MEASURED),
    _sum(_GIVEN, _MEASURED),
    _sum(_PAID * (1000 - (2000 * _BUSY + _GIVEN) // (2 * _GIVEN)) // 1000, _MEASURED),
    _sum(1, _EARLY),
    func.min(case((_EARLY, _EXIT))),
    func.max(case((_EARLY, _EXIT))),
)
