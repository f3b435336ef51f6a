"""Priorities that a real slurmctld computed: rows of sprio, recorded from Slurm 22.05 with Fair
Tree, equal ours in each cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from fairbank.priority.multifactor.combination import PriorityTerms, priorities, shown, weighted
from fairbank.priority.multifactor.pending_jobs import PendingColumns, pending, scale
from fairbank.priority.settings import MultifactorSettings, PriorityWeights
from tests.priority.cluster import NOW

# Ten nodes with 608 CPUs: three groups, each a partition, and a fourth partition over two nodes of
# the first.
CLUSTER = scale(
    nodes=10,
    cpus=608,
    partition_factors=[1, 1, 1, 10],
    qos_priorities=[0, 100],
    association_max=100,
    totals={
        "cpu": [384, 96, 128, 128],
        "mem": [786_432, 1_024_000, 262_144, 262_144],
        "gres/gpu": [0, 8, 8, 0],
    },
)
SETTINGS = MultifactorSettings(
    weights=PriorityWeights(
        age=1_000,
        association=500,
        fairshare=100_000,
        job_size=1_000,
        partition=1_000,
        qos=1_000,
        tres={"cpu": 1_000.0, "mem": 2_000.0, "gres/gpu": 3_000.0},
    )
)
CPU, GPU, LONG, NORMAL, HIGH = 0, 1, 3, 0, 1
USERS = 12


class Job(NamedTuple):
    nodes: int
    cpus: int
    memory: int
    rank: int
    """Of twelve users, in twelfths of the fair-share factor."""
    age: int = 35
    partition: int = CPU
    gpus: int = 0
    association: int = 0
    qos: int = NORMAL
    site: int = 0
    nice: int = 0

    def columns(self) -> PendingColumns:
        return pending(
            CLUSTER,
            1,
            accrued_at=NOW - self.age,
            association=self.association,
            fairshare=self.rank / USERS,
            nodes=self.nodes,
            cpus=self.cpus,
            nice=self.nice,
            site=self.site,
            partition=self.partition,
            qos=self.qos,
            # Of a job that takes nodes whole, its size counts their CPUs, and its TRES those that
            # it asked for.
            tres={
                "cpu": 6 if self.nodes == 6 else self.cpus,
                "mem": self.memory,
                "gres/gpu": self.gpus,
            },
        )


# PRIORITY, SITE, AGE, ASSOC, FAIRSHARE, JOBSIZE, PARTITION, QOS, NICE, TRES
RECORDED = {
    Job(1, 8, 8_000, 4, association=40, nice=100): "33631 0 0 200 33333 57 100 0 100 cpu=21,mem=20",
    Job(1, 40, 3_072, 2): "16961 0 0 0 16667 83 100 0 0 cpu=104,mem=8",
    Job(
        2, 2, 2_000, 3, partition=GPU, gpus=8, association=100, qos=HIGH
    ): "29726 0 0 500 25000 102 100 1000 0 cpu=21,mem=4,gres/gpu=3000",
    Job(1, 1, 1_000, 11, age=34): "91822 0 0 0 91667 51 100 0 0 cpu=3,mem=3",
    Job(1, 1, 131_072, 7, partition=LONG): "60392 0 0 0 58333 51 1000 0 0 cpu=8,mem=1000",
    Job(1, 1, 1_000, 6, site=-5_000): "45156 -5000 0 0 50000 51 100 0 0 cpu=3,mem=3",
    Job(1, 1, 1_000, 1, nice=2_000_000_000): "1 0 0 0 8333 51 100 0 2000000000 cpu=3,mem=3",
    Job(6, 384, 6_000, 1, nice=-123_456): "132536 0 0 0 8333 616 100 0 -123456 cpu=16,mem=15",
}


@pytest.mark.parametrize(
    ("job", "row"), RECORDED.items(), ids=[row.partition(" ")[0] for row in RECORDED.values()]
)
def test_cells_equal_recorded_sprio(job: Job, row: str) -> None:
    columns = job.columns()
    assert cells(weighted(columns, CLUSTER, SETTINGS, NOW)) == row
    assert priorities(columns, CLUSTER, SETTINGS, NOW)[0] == int(row.partition(" ")[0])


def test_job_in_two_partitions() -> None:
    columns = Job(1, 40, 3_072, 2).columns()
    assert priorities(columns, CLUSTER, SETTINGS, NOW).tolist() == [16_961]
    other = weighted(columns._replace(partition=np.array([GPU])), CLUSTER, SETTINGS, NOW)
    assert cells(other) == "17272 0 0 0 16667 83 100 0 0 cpu=417,mem=6"


def cells(terms: PriorityTerms) -> str:
    """Return the cells as sprio prints them, without padding."""
    plain = (
        terms.site,
        terms.age,
        terms.association,
        terms.fairshare,
        terms.job_size,
        terms.partition,
        terms.qos,
        terms.nice,
    )
    tres = ",".join(
        f"{name}={column[0]:.0f}"
        for name, column in zip(CLUSTER.tres, terms.tres, strict=True)
        if column[0]
    )
    return " ".join([f"{int(shown(terms)[0])}", *(f"{column[0]:.0f}" for column in plain), tres])
