"""What `report` is made of, and `share record`: figures as files, and fair share from day to day. Nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.report.fairshare import Kept


class Drawn(Protocol):
    """A figure that was written: its file, and what it shows."""

    @property
    def file(self) -> str: ...
    @property
    def about(self) -> str: ...


class Figures(Protocol):
    """Figures as files: SVG, or with `as_png` PNG."""

    def site_factor(self, folder: str, *, agent: str | None, as_png: bool) -> Sequence[Drawn]:
        """Draw the rules of the site factor into a folder; or only the one that the agent's settings in this file choose."""
        ...


class Recorded(Protocol):
    """What came of recording a day; `kept` is False where it was recorded before."""

    @property
    def cluster(self) -> str: ...
    @property
    def day(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def kept(self) -> bool: ...
    @property
    def unreadable(self) -> Sequence[str]: ...


class History(Protocol):
    """Daily figures of fair share in the store of a bank on this host. `config` is its settings file; None: the usual one."""

    def record(self, config: str | None, folder: str | None) -> Recorded: ...

    def kept(
        self, config: str | None, *, cluster: str | None, accounts: Sequence[str] | None, days: int, users: bool
    ) -> Sequence[Kept]: ...

    def draw(self, folder: str, kept: Sequence[Any], *, as_png: bool) -> Sequence[Drawn]:
        """A figure for each cluster; `kept` is what `kept` answered."""
        ...
