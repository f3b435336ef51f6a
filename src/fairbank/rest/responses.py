"""Outcomes of the bank as responses, and JSON as ASGI messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from litestar import Response

from fairbank.bank.rules import Done, Outcome
from fairbank.rest.problems import RefusalError
from fairbank.rest.schemas.answers import Granted, ItemResponse
from fairbank.rest.schemas.envelope import granted_answer, item_response

if TYPE_CHECKING:
    from fairbank.rest.context import AppContext


def done_of(outcome: Outcome, absent: Collection[str] = ()) -> Done:
    """Return a granted outcome.

    Args:
        outcome: the ledger's answer to the request.
        absent: fields that the request left out, which a refusal cannot be about.

    Raises:
        RefusalError: the bank refused.
    """
    if isinstance(outcome, Done):
        return outcome
    raise RefusalError(outcome, absent=absent)


def granted_response(
    outcome: Outcome, context: AppContext, warnings: Sequence[str] = ()
) -> ItemResponse[Granted]:
    """Return the body for a granted outcome, or raise RefusalError.

    Args:
        outcome: the ledger's answer to the request.
        warnings: likely mistakes in the granted request.
    """
    return item_response(context, granted_answer(done_of(outcome), warnings))


def created_response(outcome: Outcome, context: AppContext) -> Response[ItemResponse[Granted]]:
    """Return 201, or 200 if the same key was granted before, or raise RefusalError."""
    body = granted_response(outcome, context)
    return Response(body, status_code=200 if body.data.again else 201)


async def send_json(
    send: Callable[[Any], Awaitable[None]],
    status: int,
    content: object,
    media_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Send a complete response.

    Args:
        send: function of ASGI that sends.
        status: HTTP status.
        content: becomes the body.
        headers: more headers.
    """
    body = msgspec.json.encode(content)
    lines = [(b"content-type", media_type.encode()), (b"content-length", b"%d" % len(body))]
    if headers:
        lines += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
