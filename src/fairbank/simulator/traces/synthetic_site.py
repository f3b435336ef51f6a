"""The centre of a synthetic month: its machine, its people, how much they submit."""

from __future__ import annotations

from dataclasses import dataclass

from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant

A_MONDAY = Instant(1_756_684_800)  # 2025-09-01


@dataclass(frozen=True, slots=True)
class SitePartition:
    """A partition. Its processors come `unit` at a time (the cores that belong to one GPU), each
    with `memory` KiB."""

    name: str
    processors: int
    unit: int = 1
    memory: int = 4 << 20

    @property
    def widest(self) -> int:
        """The largest job, in units: a quarter of the partition."""
        return self.processors // self.unit // 4


@dataclass(frozen=True, slots=True)
class SyntheticSite:
    """Machine, users and time span of a synthetic trace. Raises InvalidInput, naming the field, for
    an impossible site.
    """

    pools: tuple[SitePartition, ...] = (
        SitePartition("cpu", 768),
        SitePartition("gpu", 192, unit=8, memory=16 << 20),
    )
    projects: int = 8
    users: int = 40
    jobs: int = 4_000
    days: int = 30
    node_failures: int = 12
    starts: Instant = A_MONDAY

    def __post_init__(self) -> None:
        roomy = all(pool.unit > 0 and pool.memory > 0 and pool.widest > 0 for pool in self.pools)
        _demand("pools", bool(self.pools) and roomy, "at least one, each with room for four units")
        names = [pool.name for pool in self.pools]
        called = all(name and name.isprintable() and name == name.strip() for name in names)
        _demand(
            "pools",
            called and len(set(names)) == len(names),
            "each a name of printable characters that no other one has",
        )
        _demand("projects", 1 <= self.projects <= 10_000, "a number from 1 to 10,000")
        _demand(
            "users",
            self.projects <= self.users <= 100_000,
            "at least one for each project, at most 100,000",
        )
        _demand("jobs", 0 <= self.jobs <= 10_000_000, "a number from 0 to 10,000,000")
        _demand("days", 1 <= self.days <= 3_660, "a number from 1 to 3,660")
        _demand("node_failures", 0 <= self.node_failures <= 10_000, "a number from 0 to 10,000")
        _demand("starts", 0 <= self.starts < 1 << 32, "seconds since 1970, before 2106")


def _demand(field: str, holds: bool, expected: str) -> None:
    if not holds:
        raise InvalidInput(
            f"this {field} of a synthetic centre cannot be", field=field, remedy=f"give {expected}"
        )
