"""Outcomes of the bank as responses."""

from __future__ import annotations

from litestar import Response

from fairbank.bank.rules import Done, Outcome
from fairbank.core.time import Clock
from fairbank.rest.problems import RefusalError
from fairbank.rest.schemas.envelope import Granted, ItemResponse, granted, item_response


def done_of(outcome: Outcome) -> Done:
    """Return a granted outcome.

    Raises:
        RefusalError: the bank refused.
    """
    if isinstance(outcome, Done):
        return outcome
    raise RefusalError(outcome)


def granted_response(outcome: Outcome, clock: Clock) -> ItemResponse[Granted]:
    """Return the body for a granted outcome, or raise RefusalError."""
    return item_response("granted", clock, granted(done_of(outcome)))


def created_response(outcome: Outcome, clock: Clock) -> Response[ItemResponse[Granted]]:
    """Return 201, or 200 if the same key was granted before, or raise RefusalError."""
    body = granted_response(outcome, clock)
    return Response(body, status_code=200 if body.data.again else 201)
