"""What `report` is made of, and `share record`: figures as files, and fair share from day to day. Nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.report.share_history import ShareHistoryRow
    from fairbank.rest.client import Client


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
    """What came of recording a day: how many associations are kept now, or would be."""

    @property
    def cluster(self) -> str: ...
    @property
    def day(self) -> str: ...
    @property
    def kept(self) -> int: ...
    @property
    def unreadable(self) -> Sequence[str]: ...


class History(Protocol):
    """Daily figures of fair share, which the bank keeps."""

    def record(self, client: Client, folder: str | None, now: int, *, dry_run: bool) -> Recorded:
        """Tell the bank how everybody stands, by the Slurm of this host, which is asked `now`, or by the files of a folder."""
        ...

    def draw(
        self, folder: str, kept: Sequence[ShareHistoryRow], *, as_png: bool
    ) -> Sequence[Drawn]:
        """A figure for each cluster."""
        ...
