"""What an answer means: data, a refusal of the bank, or a FairbankError that a problem document tells of."""

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
"""What a JSON document is made of."""


class Refused(FairbankError):
    """The bank said no: `status` tells its kind, `refusal` its figures in SU-minutes (asked, available, shortfall, ...) and remedies."""

    def __init__(self, message: str, status: int, refusal: Mapping[str, Json]) -> None:
        super().__init__(message)
        self.status = status
        self.refusal = refusal

    @property
    def remedies(self) -> list[str]:
        """What the person can do, best first."""
        said = self.refusal.get("remedies")
        return [str(each) for each in said] if isinstance(said, list) else []


def read_answer(status: int, body: bytes, address: Address) -> dict[str, Json]:
    """The JSON object of a good answer. Raises Refused, or the FairbankError that the bank had."""
    try:
        answer = json.loads(body) if body else {}
    except (ValueError, RecursionError) as bad:
        raise Unavailable(
            f"what answers at {address} is not a bank (status {status})",
            field="server",
            remedy=CHECK,
        ) from bad
    if not isinstance(answer, dict):
        raise Unavailable(
            f"what answers at {address} is not a bank (status {status})",
            field="server",
            remedy=CHECK,
        )
    if 200 <= status < 300:
        return answer
    raise trouble_of(status, answer)


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


def trouble_of(status: int, problem: Mapping[str, Json]) -> FairbankError:
    """The FairbankError, or the refusal, that a problem document of this status tells of."""
    detail = (
        _said(problem, "detail")
        or _said(problem, "title")
        or f"the bank answered with status {status}"
    )
    refusal = problem.get("refusal")
    if isinstance(refusal, dict):
        return Refused(detail, status, refusal)
    kind = (
        _BY_TITLE.get(_said(problem, "title") or "")
        or _BY_STATUS.get(status)
        or (InvalidInput if status < 500 else FairbankError)
    )
    remedy = _said(problem, "remedy") or ("try again in a moment" if kind is Unavailable else None)
    return kind(detail, field=_said(problem, "field"), remedy=remedy)


def _said(problem: Mapping[str, Json], what: str) -> str | None:
    value = problem.get(what)
    return str(value) if value else None


def unreachable(address: Address, error: OSError) -> FairbankError:
    """Why nobody answers at `address`, and what to do about it."""
    if isinstance(error, PermissionError):
        return Forbidden(
            f"you may not use {address}",
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
        f"nobody answers at {address}: {why.lower()}",
        field="server",
        remedy="start the bank with: fairbank serve; or say where it is with --server or FAIRBANK_SERVER",
    )
