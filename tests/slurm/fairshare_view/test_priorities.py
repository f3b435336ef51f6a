"""Priorities computed from what Slurm tells of a job, its partition, its association and
its QOS.
"""

from __future__ import annotations

import msgspec

from fairbank.priority.settings import Flag, MultifactorSettings, PriorityWeights
from fairbank.report.sprio import PriorityRow
from fairbank.report.sshare import ShareRow
from fairbank.slurm.fairshare_view.priorities import (
    PriorityInputs,
    compute_priorities,
    merge_factors,
)
from fairbank.slurm.parsers.job_lines import PendingFactors
from fairbank.slurm.parsers.values import AssociationPriority, SlurmNode, SlurmPartition, SlurmQos

NOON = 1_800_000_000
JOB = PendingFactors(
    job_id=7,
    user="ayla",
    account="chem",
    qos=("normal", "high"),
    partitions=("cpu", "gpu"),
    priority=1,
    nice=20,
    submitted=NOON - 3_600,
    eligible=NOON - 1_800,
    accrued=NOON - 1_800,
    limit_minutes=0,
    nodes=1,
    cpus=8,
    tres="cpu=8,mem=1000M,node=1,billing=8",
)
WEIGHTS = PriorityWeights(
    age=1_000,
    association=1_000,
    fairshare=1_000,
    job_size=1_000,
    partition=1_000,
    qos=1_000,
    tres={"cpu": 100.0},
)
GROUNDS = PriorityInputs(
    MultifactorSettings(weights=WEIGHTS, max_age_seconds=7_200),
    "cpu,mem,energy,node,billing",
    [JOB],
    [
        SlurmPartition("cpu", factor=1, max_minutes=60, tres="cpu=16"),
        SlurmPartition("gpu", factor=4, tres="cpu=32"),
    ],
    [SlurmNode("n1", 16, 1, ("cpu",)), SlurmNode("n2", 16, 1, ("gpu",))],
    [SlurmQos("normal", 0, "1.0"), SlurmQos("high", 50, "1.0")],
    [AssociationPriority("chem", "ayla", "", 10), AssociationPriority("chem", "ayla", "gpu", 40)],
)
FACTORS = {("chem", "ayla", ""): 0.25, ("chem", "ayla", "gpu"): 0.75}
CPU, GPU = PriorityRow(7, "cpu", "ayla", site=5), PriorityRow(7, "gpu", "ayla")


def of(told: PriorityRow, grounds: PriorityInputs = GROUNDS) -> PriorityRow:
    (row,) = compute_priorities([told], grounds, FACTORS, NOON)
    return row


def test_every_factor_of_a_job() -> None:
    row = of(CPU)
    assert (row.age, row.association, row.fair_share, row.partition, row.qos) == (
        250.0,
        250.0,
        250.0,
        250.0,
        0.0,
    )
    assert row.job_size == 375.0, "half of the nodes, a quarter of the CPUs"
    assert (row.tres, row.site, row.nice) == ({"cpu": 50.0}, 5, 20)
    assert row.priority == 250 * 4 + 375 + 50 + 5 - 20


def test_where_a_partition_has_an_association_of_its_own_that_one_pays() -> None:
    row = of(GPU)
    assert (row.association, row.fair_share, row.partition) == (1_000.0, 750.0, 1_000.0)


def test_each_qos_of_a_job_has_a_row_of_its_own() -> None:
    rows = compute_priorities(
        [CPU._replace(qos_name="normal"), CPU._replace(qos_name="high")], GROUNDS, FACTORS, NOON
    )
    assert [(row.qos_name, row.qos) for row in rows] == [("normal", 0.0), ("high", 1_000.0)]


def test_age_accrues_from_submission_where_the_site_says_so() -> None:
    always = msgspec.structs.replace(GROUNDS.settings, flags=frozenset({Flag.ACCRUE_ALWAYS}))
    assert of(CPU, GROUNDS._replace(settings=always)).age == 500.0
    idle = msgspec.structs.replace(JOB, accrued=None)
    assert of(CPU, GROUNDS._replace(settings=always, jobs=[idle])).age == 0.0


def test_a_job_without_a_limit_has_that_of_its_partition_or_none() -> None:
    by_time = msgspec.structs.replace(
        GROUNDS.settings, flags=frozenset({Flag.SMALL_RELATIVE_TO_TIME})
    )
    sizes = [of(row, GROUNDS._replace(settings=by_time)).job_size for row in (CPU, GPU)]
    assert sizes == [1_000 * 16 / 60 / 32, 1_000 * 16 / (2**32 - 1) / 32]


def test_the_tick_is_known_from_the_oldest_age() -> None:
    assert compute_priorities([GPU._replace(age=250.0)], GROUNDS, FACTORS)[0].age == 250.0


def test_what_cannot_be_computed_is_left_out() -> None:
    given, gone, elsewhere = (
        CPU._replace(direct=99),
        CPU._replace(job=8),
        CPU._replace(partition_name="idle"),
    )
    assert compute_priorities([given, gone, elsewhere, GPU], GROUNDS, FACTORS, NOON) == [of(GPU)]


def test_a_factor_has_all_its_digits_where_they_are_those_that_slurm_prints() -> None:
    said = [
        ShareRow("chem", parent="root"),
        ShareRow("chem", "ayla", factor=0.333333),
        ShareRow("chem", "jorge", factor=0.5),
    ]
    anew = [said[0], said[1]._replace(factor=1 / 3), said[2]._replace(factor=0.500001)]
    assert merge_factors(said, anew) == {("chem", "ayla", ""): 1 / 3, ("chem", "jorge", ""): 0.5}
