"""Exit codes: what each means, and with which one a refusal and a trouble end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.rest.statuses import kind_of
from fairbank.values.refusal_kind import RefusalKind
from fairbank.values.trouble import Busy, Conflict, Corrupt, Forbidden, Malformed, Trouble, Unauthenticated, Unknown, Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

EXIT_CODES: Mapping[int, str] = {
    0: "done; or the condition is true",
    1: "failed otherwise, or not agreed to",
    2: "wrong usage",
    3: "not found",
    4: "not permitted, or not signed in",
    5: "too little left, or --threshold not met",
    6: "the bank does not answer: safe to repeat",
    7: "conflict: there with other content, or its state does not allow it",
    8: "a check ran and found something (audit verify, backup verify, doctor)",
    130: "interrupted",
}

REFUSED: Mapping[RefusalKind, int] = {
    RefusalKind.CANNOT_BE_PAID: 5,
    RefusalKind.NOT_FOUND: 3,
    RefusalKind.NOT_PERMITTED: 4,
    RefusalKind.CONFLICT: 7,
}

OF_TROUBLE: Mapping[type[Trouble], int] = {
    Malformed: 2,
    Unauthenticated: 4,
    Forbidden: 4,
    Unknown: 3,
    Conflict: 7,
    Busy: 6,
    Unreachable: 6,
    Corrupt: 8,
    Trouble: 1,
}


def exit_of_refusal(status: int) -> int:
    """The exit code for a refusal that came with this HTTP status."""
    return REFUSED[kind_of(status)]


def exit_of_trouble(trouble: Trouble) -> int:
    """The exit code for a trouble of this kind."""
    return next(OF_TROUBLE[kind] for kind in type(trouble).__mro__ if kind in OF_TROUBLE)
