"""Which rows judging a batch changed, for the store to write."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import NO_LINK, Allocation
from fairbank.cluster.job import Run


class Office(msgspec.Struct, frozen=True):
    """The head of book 0."""

    seq: int = 0
    link: bytes = NO_LINK


class OfficeNeeded(Exception):
    """The batch wants to write in the office's book, which was not loaded: load it and judge again."""


class Changes:
    """Which rows are new, or other than they were loaded, by their keys.

    `amended` has the allocations as each change of terms left them, in that order: at no step do two periods overlap.
    """

    def __init__(self) -> None:
        self.touched: set[int] = set()
        self.opened: set[int] = set()
        self.amended: list[Allocation] = []
        self.new_runs: set[Run] = set()
        self.changed_runs: set[Run] = set()
        self.changed_users: set[tuple[int, int]] = set()
        self.new_projects: set[int] = set()
        self.changed_projects: set[int] = set()
        self.changed_members: set[tuple[int, int]] = set()
        self.new_tokens: set[int] = set()
        self.changed_tokens: set[int] = set()
