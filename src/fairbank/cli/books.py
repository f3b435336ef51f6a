"""What the commands that look after the books on the bank's own host are made of. Nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Progress = Callable[[int, int], None]
    """Called with how much is done, and of how much."""


class Finding(Protocol):
    """One thing that is not as the journal says: in which book (0 is the registry's, None the store as a whole), perhaps at which entry."""

    @property
    def book(self) -> int | None: ...
    @property
    def what(self) -> str: ...
    @property
    def entry(self) -> int | None: ...


class Verdict(Protocol):
    """What an audit read and found."""

    @property
    def entries(self) -> int: ...
    @property
    def books(self) -> int: ...
    @property
    def runs(self) -> int: ...
    @property
    def findings(self) -> Sequence[Finding]: ...


class Head(Protocol):
    """How far a book is: the number of its last entry and that entry's link."""

    @property
    def book(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def link(self) -> bytes: ...


class Books(Protocol):
    """Looking after the books."""

    def heads(self, config: str | None) -> Sequence[Head]: ...

    def verify(
        self, config: str | None, heads: Mapping[int, tuple[int, bytes]], progress: Progress | None
    ) -> Verdict:
        """Read all books again. `heads` are those written down earlier: book to (seq, link)."""
        ...

    def backup(
        self,
        config: str | None,
        path: str,
        *,
        replace: bool,
        progress: Progress | None,
        at_work: Callable[[], None],
    ) -> int:
        """Write a backup while the bank works. Raises Conflict when there is a file and `replace` is false. Returns the number of rows.

        `at_work` is called now and then as long as the store's file is checked, which is done first.
        """
        ...

    def check_backup(self, path: str, progress: Progress | None) -> int:
        """Read a backup to its end. Returns the number of rows."""
        ...

    def restore(
        self, config: str | None, path: str, *, replace: bool, progress: Progress | None
    ) -> int:
        """Fill the store from a backup. Raises Conflict when it is not empty and `replace` is false. Returns the number of rows."""
        ...
