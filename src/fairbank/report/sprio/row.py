"""A waiting job with what each factor adds to its priority, and the weights of the factors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class WeightRow(NamedTuple):
    """Slurm's PriorityWeight*. `tres_text` is PriorityWeightTRES as the settings have it, `tres` that by name."""

    age: int = 0
    association: int = 0
    fair_share: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Mapping[str, float] = {}
    tres_text: str = ""


class PriorityRow(NamedTuple):
    """A job in one of its partitions. The factors are weighted: each times its weight, with all decimals.
    `tres` has those that add anything, be it less than sprio's columns show.

    `site` and `nice` are counted from 0. `direct` is the priority that an administrator gave, and then there are no factors. `total` is the
    sum where it is known better than from the factors. `submitted` is the instant, None where it is not known. `runs`: it waits no more;
    sprio has such jobs too where CALCULATE_RUNNING is set. `short_zeros`: without factors each normalised one is told as a bare
    0, as newer Slurms do (24.11 seen).
    """

    job: int
    partition_name: str
    user: str = ""
    account: str = ""
    qos_name: str = ""
    cluster: str | None = None
    age: float = 0.0
    association: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = {}
    site: int = 0
    nice: int = 0
    direct: int | None = None
    total: float | None = None
    submitted: int | None = None
    runs: bool = False
    short_zeros: bool = False

    @property
    def priority(self) -> float:
        """As sprio adds it up: TRES last, at least 1."""
        if self.direct is not None:
            return float(self.direct)
        if self.total is not None:
            return max(self.total, 1.0)
        found = (
            self.age
            + self.association
            + self.fair_share
            + self.job_size
            + self.partition
            + self.qos
        )
        found += self.site
        found -= self.nice
        for value in self.tres.values():
            found += value
        return max(found, 1.0)


def select_rows(
    rows: Sequence[PriorityRow],
    *,
    jobs: Collection[int] | None = None,
    users: Collection[str] | None = None,
    partitions: Collection[str] | None = None,
) -> list[PriorityRow]:
    """The rows of these jobs, users and partitions; None stands for all of them."""
    return [
        row
        for row in rows
        if (jobs is None or row.job in jobs)
        and (users is None or row.user in users)
        and (partitions is None or row.partition_name in partitions)
    ]
