"""Error classes, and the kinds of refusals, each with its HTTP status and its exit code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum


class FairbankError(Exception):
    """An error that is shown in one sentence, with the field concerned and the remedy.

    * FairbankError
      + InvalidInput      the input cannot be read, or contradicts itself
      + Unauthenticated   the user is not known
      + Forbidden         the user may not do this
      + NotFound          no such thing exists, or the user may not see it
      + Conflict          it exists with other content
      + Busy              too many requests are queued; retry later
      + Unavailable       no answer; retry later
      + Corrupt           stored data fails its own check

    A refusal of the bank is no error but a normal result, so it is a value (`bank.refusals`).
    Subclasses elsewhere inherit the status and the exit code.

    `is_disk_full`: no space is left on a disk. It is known in the process that raised the error.
    `is_answer`: the bank answered with it, so field and remedy are those of the request. `bank` is
    the name of the bank that answered before the error, or with it.
    """

    status, exit_code = 500, 1
    title = "error"
    is_disk_full = False
    is_answer = False
    bank: str | None = None

    def __init__(
        self, message: str, *, field: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.remedy = remedy

    def __init_subclass__(cls) -> None:
        """Make the title of a class that states its own status: `invalid input`."""
        super().__init_subclass__()
        if "status" in vars(cls):
            cls.title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cls.__name__).lower()


class InvalidInput(FairbankError):
    status, exit_code = 400, 2


class Unauthenticated(FairbankError):
    status, exit_code = 401, 4


class Forbidden(FairbankError):
    status, exit_code = 403, 4


class NotFound(FairbankError):
    status, exit_code = 404, 3


class Conflict(FairbankError):
    status, exit_code = 409, 7


class Busy(FairbankError):
    status, exit_code = 503, 6

    def __init__(self, message: str, *, retry_after_seconds: int = 1) -> None:
        remedy = f"try again in {retry_after_seconds} s; the request was not carried out"
        super().__init__(message, remedy=remedy)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(FairbankError):
    status, exit_code = 503, 6


class Corrupt(FairbankError):
    status, exit_code = 500, 8


class RefusalKind(Enum):
    """Kinds of refusals: HTTP status and exit code of each."""

    PAYMENT_REQUIRED = (402, 5)
    FORBIDDEN = (403, 4)
    NOT_FOUND = (404, 3)
    CONFLICT = (409, 7)

    @property
    def status(self) -> int:
        return self.value[0]

    @property
    def exit_code(self) -> int:
        return self.value[1]

    @classmethod
    def of_status(cls, status: int) -> RefusalKind:
        """Return the kind with this HTTP status; CONFLICT for a status of a newer server."""
        return next((kind for kind in cls if kind.status == status), cls.CONFLICT)


LISTED_MAX = 5
"""Maximum number of names or numbers that a message lists."""


def list_some(names: Sequence[object]) -> str:
    """Return the first LISTED_MAX names, separated by commas, with `...` if there are more."""
    return ", ".join(map(str, names[:LISTED_MAX])) + (", ..." if len(names) > LISTED_MAX else "")
