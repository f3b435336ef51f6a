"""The rows that a batch of wishes needs, as a value that the stores load by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import msgspec

from fairbank.bank.reach import Funds, Reach
from fairbank.bank.run import RESOLVED, RunRecord
from fairbank.bank.wish import AmendProject, CreateProject
from fairbank.cluster.job import Run


class Needs(msgspec.Struct, kw_only=True):
    """What the store must load for a batch.

    What is loaded is locked, and whoever else needs it waits. So of a fund no more is wanted than a run could draw on: those who draw on
    allocations of their own do not wait for each other over what their parent does not share, nor over those of another year. A run that
    ends needs the allocation that carries its hold, and others only where it has none. Terms that another
    server changes while we wait are seen on what is locked; what they make eligible meanwhile counts from the next batch on, as if
    they had been changed after it.
    """

    allocations: set[int] = msgspec.field(default_factory=set)
    """Allocations by their numbers."""
    funds: Funds = msgspec.field(default_factory=dict)
    """Of which projects and resources, and what of them."""
    late: Funds = msgspec.field(default_factory=dict)
    """Likewise, but only if one of the runs that are `ending` is not in the books."""
    ending: set[Run] = msgspec.field(default_factory=set)
    """Runs that end; they are among the `runs`."""
    runs: set[Run] = msgspec.field(default_factory=set)
    """Runs, with the allocations that carry their holds."""
    starting: set[Run] = msgspec.field(default_factory=set)
    """Those of the `runs` that are said to start."""
    changing: set[Run] = msgspec.field(default_factory=set)
    """Those of the `runs` whose hold is to change."""
    keys: set[tuple[int, str]] = msgspec.field(default_factory=set)
    """Entries by the actor and key of their wish."""
    undone: set[int] = msgspec.field(default_factory=set)
    """Entries that are to be taken back, with those that took them back before."""
    reworded: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Terms, caps and roles of which all that was ever said is wanted, as `bank.entry.tells_of` names them."""
    owners: dict[tuple[int, str], set[int]] = msgspec.field(default_factory=dict)
    """By project and resource, the users whose sums are wanted in whatever allocations of these they may draw on."""
    caps: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Sums and caps as (allocation, user)."""
    projects: set[int] = msgspec.field(default_factory=set)
    """Projects by their numbers."""
    enriched: set[int] = msgspec.field(default_factory=set)
    """Allocations that get credit: their projects are wanted."""
    creating: list[CreateProject | AmendProject] = msgspec.field(default_factory=list)
    """Names to be given: the projects that these would collide with are wanted."""
    closing: set[int] = msgspec.field(default_factory=set)
    """Projects that are to be removed: all their allocations are wanted, their open runs, and the projects under them."""
    renaming: set[int] = msgspec.field(default_factory=set)
    """Projects of which it is asked whether they were ever used."""
    lines: bool = False
    """Whether of all projects loaded those above them are wanted too."""
    members: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Roles by project and user."""
    tokens: set[int] = msgspec.field(default_factory=set)
    """Tokens by their numbers."""
    digests: set[bytes] = msgspec.field(default_factory=set)
    """Tokens by their digests."""
    entries: int = 0
    """How many fresh numbers are wanted for entries, at most."""
    opens: int = 0
    """And for allocations."""
    creates: int = 0
    """And for projects."""
    issues: int = 0
    """And for tokens."""
    office: bool = False
    """Whether the head of the office's book is wanted."""
    foretold: bool = False
    """Whether nothing will be written: then the numbers that would be drawn next will do."""

    def reaches(self, known: Set[Run]) -> Iterator[tuple[int, str, Reach]]:
        """Project, resource, and what is wanted of their allocations, where of the `ending` runs these are in the books."""
        for funds in (self.funds,) if self.ending <= known else (self.funds, self.late):
            for (project, resource, _), reach in funds.items():
                yield project, resource, reach


def told_by(needs: Needs, runs: Iterable[RunRecord]) -> set[int]:
    """The entries that a report made before would be answered with, none where every run just starts or ends; and those to be undone."""
    told = {each.set_by for each in runs if each.state in RESOLVED or each.run in needs.changing}
    if needs.starting:
        told.update(each.id for each in runs if each.run in needs.starting)
    return told | needs.undone
