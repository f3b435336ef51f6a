"""Responses of the bank: JSON data, or a problem document as an exception."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fairbank.core.errors import (
    Conflict,
    Corrupt,
    FairbankError,
    Forbidden,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from fairbank.rest.client.address import Address
from fairbank.rest.client.response import CHECK

Json = Any
"""A value in a JSON document."""


class Refused(FairbankError):
    """A refusal of the bank.

    `status` is the HTTP status. `refusal` has the amounts in SU-minutes (asked, available,
    shortfall, ...) and the remedies.
    """

    def __init__(self, message: str, status: int, refusal: Mapping[str, Json]) -> None:
        super().__init__(message)
        self.status = status
        self.refusal = refusal

    @property
    def remedies(self) -> list[str]:
        """Remedies, the best one first."""
        remedies = self.refusal.get("remedies")
        return [str(remedy) for remedy in remedies] if isinstance(remedies, list) else []


def read_answer(status: int, body: bytes, address: Address) -> dict[str, Json]:
    """Return the JSON object of a successful response.

    Args:
        status: HTTP status.
        body: of the response.
        address: of the bank, for messages.

    Raises:
        Refused: the bank refused.
        FairbankError: the error of the problem document.
    """
    try:
        answer = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Unavailable(
            f"the server at {address} is not a bank (status {status})", field="server", remedy=CHECK
        )
    if 200 <= status < 300:
        return answer
    raise error_of(status, answer)


_BY_TITLE: Mapping[str, type[FairbankError]] = {
    kind.title: kind
    for kind in (InvalidInput, Unauthenticated, Forbidden, NotFound, Conflict, Unavailable, Corrupt)
}
_BY_STATUS: Mapping[int, type[FairbankError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def error_of(status: int, problem: Mapping[str, Json]) -> FairbankError:
    """Return the error, or the refusal, in a problem document of this status."""
    detail = (
        _text(problem, "detail")
        or _text(problem, "title")
        or f"the bank answered with status {status}"
    )
    refusal = problem.get("refusal")
    if isinstance(refusal, dict):
        return Refused(detail, status, refusal)
    kind = (
        _BY_TITLE.get(_text(problem, "title") or "")
        or _BY_STATUS.get(status)
        or (InvalidInput if status < 500 else FairbankError)
    )
    remedy = _text(problem, "remedy") or ("try again in a moment" if kind is Unavailable else None)
    return kind(detail, field=_text(problem, "field"), remedy=remedy)


def _text(problem: Mapping[str, Json], name: str) -> str | None:
    value = problem.get(name)
    return str(value) if value else None


def unreachable(address: Address, error: OSError) -> FairbankError:
    """Return the error for a connection that failed."""
    if isinstance(error, PermissionError):
        return Forbidden(
            f"you may not connect to {address}",
            field="server",
            remedy="ask the bank's staff, or name another bank: FAIRBANK_SERVER",
        )
    if isinstance(error, TimeoutError):
        return Unavailable(
            f"the bank at {address} does not answer in time",
            field="server",
            remedy="try again; it may be busy or stopped",
        )
    why = error.strerror or str(error) or type(error).__name__
    return Unavailable(
        f"no bank answers at {address}: {why.lower()}",
        field="server",
        remedy=(
            "start the bank with: fairbank serve; "
            "or give its address with --server or FAIRBANK_SERVER"
        ),
    )
