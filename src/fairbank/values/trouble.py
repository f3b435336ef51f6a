"""Everything that can go wrong outside the rules of the bank, on one page."""

from __future__ import annotations


class Trouble(Exception):
    """A failure that a person is told in one sentence, with the field concerned and the remedy.

    * Trouble
      + Malformed         we cannot read what was sent                400   exit 2
      + Unauthenticated   we do not know who asks                     401   exit 4
      + Forbidden         the asker may not do this                   403   exit 4
      + Unknown           there is no such thing, or not for you      404   exit 3
      + Conflict          it exists with other content                409   exit 7
      + Busy              too much is waiting; try again              503   exit 6
      + Unreachable       nobody answered; try again                  503   exit 6
      + Corrupt           a stored thing fails its own check          500   exit 8

    A refusal is not here: saying no is the bank's work, so it is a value (`bank.refusal`).
    """

    http = 500
    exit = 1

    def __init__(self, message: str, *, field: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.remedy = remedy

    @property
    def title(self) -> str:
        """The kind of trouble in lower-case words, for the head of an error."""
        return type(self).__name__.lower()


class Malformed(Trouble):
    http, exit = 400, 2


class Unauthenticated(Trouble):
    http, exit = 401, 4


class Forbidden(Trouble):
    http, exit = 403, 4


class Unknown(Trouble):
    http, exit = 404, 3


class Conflict(Trouble):
    http, exit = 409, 7


class Busy(Trouble):
    http, exit = 503, 6

    def __init__(self, message: str, *, retry_after_seconds: int = 1) -> None:
        super().__init__(message, remedy=f"try again in {retry_after_seconds} s; the request was not carried out")
        self.retry_after_seconds = retry_after_seconds


class Unreachable(Trouble):
    http, exit = 503, 6


class Corrupt(Trouble):
    http, exit = 500, 8
