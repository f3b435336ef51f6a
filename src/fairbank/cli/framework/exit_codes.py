"""Exit codes: the meaning of each, and the code of a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.core.errors import RefusalKind

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
    FOUND: "the command ran and found a fault, or left something out; its output names it",
    INTERRUPTED: "interrupted",
}


def exit_of_refusal(status: int) -> int:
    """Return the exit code for a refusal with this HTTP status."""
    return RefusalKind.of_status(status).exit_code
