"""Errors outside the rules of the bank."""

from __future__ import annotations


class Trouble(Exception):
    """Failure that is shown to a user in one sentence, with the field concerned and the remedy.

    * Trouble
      + Malformed         the input cannot be read
      + Unauthenticated   the user is unknown
      + Forbidden         the user may not do this
      + Unknown           it does not exist, or the user may not see it
      + Conflict          it exists with other content
      + Busy              too many requests wait; retry
      + Unreachable       no answer; retry
      + Corrupt           a stored value fails its check

    `rest.statuses` has the HTTP statuses, `cli.framework.exit_codes` the exit codes. A refusal is
    no error but a value (`bank.refusal`).
    """

    def __init__(
        self, message: str, *, field: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.remedy = remedy

    @property
    def title(self) -> str:
        """Kind of error in lower-case words, for the title of a problem."""
        return type(self).__name__.lower()


class Malformed(Trouble): ...


class Unauthenticated(Trouble): ...


class Forbidden(Trouble): ...


class Unknown(Trouble): ...


class Conflict(Trouble): ...


class Busy(Trouble):
    def __init__(self, message: str, *, retry_after_seconds: int = 1) -> None:
        super().__init__(
            message, remedy=f"try again in {retry_after_seconds} s; the request was not carried out"
        )
        self.retry_after_seconds = retry_after_seconds


class Unreachable(Trouble): ...


class Corrupt(Trouble): ...
