"""Exit codes, and which of them refusals and errors have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.core.errors import (
    Busy,
    Conflict,
    Corrupt,
    Forbidden,
    Malformed,
    Trouble,
    Unauthenticated,
    Unknown,
    Unreachable,
)
from fairbank.core.refusal_kind import RefusalKind
from fairbank.rest.statuses import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

DONE, NOT_DONE, WRONG_USAGE, NOT_FOUND, NOT_PERMITTED = 0, 1, 2, 3, 4
TOO_LITTLE, NO_ANSWER, CONFLICT, FOUND, INTERRUPTED = 5, 6, 7, 8, 130

EXIT_CODES: Mapping[int, str] = {
    DONE: "done; or the condition is true",
    NOT_DONE: "failed otherwise, or not agreed to",
    WRONG_USAGE: "wrong usage",
    NOT_FOUND: "not found",
    NOT_PERMITTED: "not permitted, or not signed in",
    TOO_LITTLE: "too little left, or --threshold not met",
    NO_ANSWER: "the bank does not answer: safe to repeat",
    CONFLICT: "conflict: there with other content, or its state does not allow it",
    FOUND: "it ran and found something wrong, or had to leave something out; it says what",
    INTERRUPTED: "interrupted",
}

REFUSED: Mapping[RefusalKind, int] = {
    RefusalKind.CANNOT_BE_PAID: TOO_LITTLE,
    RefusalKind.NOT_FOUND: NOT_FOUND,
    RefusalKind.NOT_PERMITTED: NOT_PERMITTED,
    RefusalKind.CONFLICT: CONFLICT,
}

OF_TROUBLE: Mapping[type[Trouble], int] = {
    Malformed: WRONG_USAGE,
    Unauthenticated: NOT_PERMITTED,
    Forbidden: NOT_PERMITTED,
    Unknown: NOT_FOUND,
    Conflict: CONFLICT,
    Busy: NO_ANSWER,
    Unreachable: NO_ANSWER,
    Corrupt: FOUND,
    Trouble: NOT_DONE,
}


def exit_of_refusal(status: int) -> int:
    """Return the exit code for a refusal with this HTTP status."""
    return REFUSED[kind_of(status)]


def exit_of_trouble(trouble: Trouble) -> int:
    """Return the exit code for an error of this kind."""
    return next(OF_TROUBLE[kind] for kind in type(trouble).__mro__ if kind in OF_TROUBLE)
