"""Pending job with its weighted priority factors, and the weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class WeightRow(NamedTuple):
    """Slurm's PriorityWeight*. `tres_text` is PriorityWeightTRES as configured, `tres` the same by
    name.
    """

    age: int = 0
    association: int = 0
    fair_share: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Mapping[str, float] = {}
    tres_text: str = ""


class PriorityRow(NamedTuple):
    """Job in one of its partitions, with its weighted factors in full precision.

    `tres` has the TRES that add anything. `site` and `nice` are offsets from 0. `direct` is the
    priority that an administrator set; then there are no factors. `total` is the sum if it is known
    better than from the factors. `submitted` is None if unknown. `runs` marks a running job, which
    sprio lists with CALCULATE_RUNNING. `short_zeros` prints a normalised factor as 0 for a job
    without factors, as Slurm 24.11 does.
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
        """Priority as sprio adds it up: TRES last, at least 1."""
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
    """Return the rows of these jobs, users and partitions; None selects all."""
    return [
        row
        for row in rows
        if (jobs is None or row.job in jobs)
        and (users is None or row.user in users)
        and (partitions is None or row.partition_name in partitions)
    ]
