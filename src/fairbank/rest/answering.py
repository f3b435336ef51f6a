"""Outcomes of the bank as responses."""

from __future__ import annotations

from litestar import Response

from fairbank.bank.ledger import Done, Outcome
from fairbank.rest.bodies.answers import Granted, Single
from fairbank.rest.problems import SaidNo
from fairbank.rest.views import granted, single
from fairbank.values.time import Clock


def done_of(outcome: Outcome) -> Done:
    """What was granted. Raises SaidNo."""
    if isinstance(outcome, Done):
        return outcome
    raise SaidNo(outcome)


def answer(outcome: Outcome, clock: Clock) -> Single[Granted]:
    """Raises SaidNo."""
    return single("granted", clock, granted(done_of(outcome)))


def new(outcome: Outcome, clock: Clock) -> Response[Single[Granted]]:
    """201, or 200 for what was granted before under the same key. Raises SaidNo."""
    told = answer(outcome, clock)
    return Response(told, status_code=200 if told.data.again else 201)
