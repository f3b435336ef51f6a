"""Everything that can go wrong outside the rules of the bank, on one page."""

from __future__ import annotations


class Trouble(Exception):
    """A failure that a person is told in one sentence, with the field concerned and the remedy.

    * Trouble
      + Malformed         we cannot read what was sent
      + Unauthenticated   we do not know who asks
      + Forbidden         the asker may not do this
      + Unknown           there is no such thing, or not for you
      + Conflict          it exists with other content
      + Busy              too much is waiting; try again
      + Unreachable       nobody answered; try again
      + Corrupt           a stored thing fails its own check

    `rest.statuses` says which HTTP status each is, `cli.exits` which exit code.
    A refusal is not here: saying no is the bank's work, so it is a value (`bank.refusal`).
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
        """The kind of trouble in lower-case words, for the head of an error."""
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
