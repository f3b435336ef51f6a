"""Outcomes of the bank as responses."""

from __future__ import annotations

from typing import NamedTuple

from litestar import Response

from fairbank.bank.rules import Done, Outcome
from fairbank.core.time import Clock
from fairbank.rest.bodies.answers import Granted, Single
from fairbank.rest.problems import SaidNo
from fairbank.rest.views import granted, single

ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Headers of every answer."""
UNLESS_SAID = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""Headers of those answers that do not say otherwise."""


def done_of(outcome: Outcome) -> Done:
    """What was granted. Raises SaidNo."""
    if isinstance(outcome, Done):
        return outcome
    raise SaidNo(outcome)


def answer(outcome: Outcome, clock: Clock) -> Single[Granted]:
    """Raises SaidNo."""
    return single("granted", clock, granted(done_of(outcome)))


class Reply(NamedTuple):
    """An answer and its status: what the lane sends as it is. To make the framework's response of it takes as long as to read a report."""

    content: Single[Granted]
    status: int


def reply(outcome: Outcome, clock: Clock) -> Reply:
    """201, or 200 for what was granted before under the same key. Raises SaidNo."""
    content = answer(outcome, clock)
    return Reply(content, 200 if content.data.again else 201)


def new(outcome: Outcome, clock: Clock) -> Response[Single[Granted]]:
    """`reply` as a response."""
    return response(reply(outcome, clock))


def response(came: Reply) -> Response[Single[Granted]]:
    """For the framework's long way."""
    return Response(came.content, status_code=came.status)
