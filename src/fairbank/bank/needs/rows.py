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

    `allocations` by number, `funds` with what is wanted of them, `late` likewise, but only if one of the runs that are `ending` is not
    in the books, `runs` with their allocations (those that are said to start are `starting`, those whose hold is to change `changing`),
    entries by the actor and key of a wish in `keys`, entries to be `undone` with those that undid them before, all that was ever
    said of the terms, caps and roles in `reworded`, `caps` as (allocation, user), user sums for `owners` in whatever allocations they may
    draw on, `projects`, those of the allocations that are `enriched`, and those that the names of one of `creating` would collide with,
    all allocations of projects that are `closing`, with their open runs and the projects under them, whether those of `renaming` were
    ever used, of all projects loaded also their parents' if `lines`, `members` by project and user, `tokens` by number and by their
    `digests`. `drawn` is for whoever works this out: what is among the funds already.
    `entries`, `opens`, `creates`, `issues` count the fresh numbers wanted at most.

    What is loaded is locked, and whoever else needs it waits. So of a fund no more is wanted than a run could draw on: those who draw on
    allocations of their own do not wait for each other over what their parent does not share, nor over those of another year. A run that
    ends needs the allocation that carries its hold, and others only where it has none. Terms that another
    server changes while we wait are seen on what is locked; what they make eligible meanwhile counts from the next batch on, as if
    they had been changed after it.
    """

    allocations: set[int] = msgspec.field(default_factory=set)
    funds: Funds = msgspec.field(default_factory=dict)
    late: Funds = msgspec.field(default_factory=dict)
    ending: set[Run] = msgspec.field(default_factory=set)
    runs: set[Run] = msgspec.field(default_factory=set)
    starting: set[Run] = msgspec.field(default_factory=set)
    changing: set[Run] = msgspec.field(default_factory=set)
    keys: set[tuple[int, str]] = msgspec.field(default_factory=set)
    undone: set[int] = msgspec.field(default_factory=set)
    reworded: set[tuple[int, int]] = msgspec.field(default_factory=set)
    owners: dict[tuple[int, str], set[int]] = msgspec.field(default_factory=dict)
    caps: set[tuple[int, int]] = msgspec.field(default_factory=set)
    projects: set[int] = msgspec.field(default_factory=set)
    enriched: set[int] = msgspec.field(default_factory=set)
    creating: list[CreateProject | AmendProject] = msgspec.field(default_factory=list)
    closing: set[int] = msgspec.field(default_factory=set)
    renaming: set[int] = msgspec.field(default_factory=set)
    lines: bool = False
    members: set[tuple[int, int]] = msgspec.field(default_factory=set)
    tokens: set[int] = msgspec.field(default_factory=set)
    digests: set[bytes] = msgspec.field(default_factory=set)
    drawn: set[tuple[bool, tuple[int, ...], str, int, int]] = msgspec.field(default_factory=set)
    entries: int = 0
    opens: int = 0
    creates: int = 0
    issues: int = 0
    office: bool = False

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
