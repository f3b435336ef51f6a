"""Priorities computed from Slurm's output on a job, its partition, its association and its QOS."""

from __future__ import annotations

import msgspec

from fairbank.priority.settings import Flag, MultifactorSettings, PriorityWeights
from fairbank.report.slurm.sprio import PriorityRow
from fairbank.report.slurm.sshare import ShareRow
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


def computed(inputs_row: PriorityRow, grounds: PriorityInputs = GROUNDS) -> PriorityRow:
    (row,) = compute_priorities([inputs_row], grounds, FACTORS, NOON)
    return row


def test_every_factor_of_a_job() -> None:
    row = computed(CPU)
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


def test_partition_association_is_used() -> None:
    row = computed(GPU)
    assert (row.association, row.fair_share, row.partition) == (1_000.0, 750.0, 1_000.0)


def test_each_qos_of_a_job_has_a_row() -> None:
    rows = compute_priorities(
        [CPU._replace(qos_name="normal"), CPU._replace(qos_name="high")], GROUNDS, FACTORS, NOON
    )
    assert [(row.qos_name, row.qos) for row in rows] == [("normal", 0.0), ("high", 1_000.0)]


def test_age_accrues_from_submission_with_accrue_always() -> None:
    always = msgspec.structs.replace(GROUNDS.settings, flags=frozenset({Flag.ACCRUE_ALWAYS}))
    assert computed(CPU, GROUNDS._replace(settings=always)).age == 500.0
    idle = msgspec.structs.replace(JOB, accrued=None)
    assert computed(CPU, GROUNDS._replace(settings=always, jobs=[idle])).age == 0.0


def test_job_without_limit_uses_the_partition_limit() -> None:
    by_time = msgspec.structs.replace(
        GROUNDS.settings, flags=frozenset({Flag.SMALL_RELATIVE_TO_TIME})
    )
    sizes = [computed(row, GROUNDS._replace(settings=by_time)).job_size for row in (CPU, GPU)]
    assert sizes == [1_000 * 16 / 60 / 32, 1_000 * 16 / (2**32 - 1) / 32]


def test_tick_is_derived_from_the_oldest_age() -> None:
    assert compute_priorities([GPU._replace(age=250.0)], GROUNDS, FACTORS)[0].age == 250.0


def test_rows_without_inputs_are_left_out() -> None:
    with_priority, unknown_job, other_partition = (
        CPU._replace(direct=99),
        CPU._replace(job=8),
        CPU._replace(partition_name="idle"),
    )
    assert compute_priorities(
        [with_priority, unknown_job, other_partition, GPU], GROUNDS, FACTORS, NOON
    ) == [computed(GPU)]


def test_computed_factor_is_used_if_it_rounds_to_the_printed_one() -> None:
    printed = [
        ShareRow("chem", parent="root"),
        ShareRow("chem", "ayla", factor=0.333333),
        ShareRow("chem", "jorge", factor=0.5),
    ]
    computed = [printed[0], printed[1]._replace(factor=1 / 3), printed[2]._replace(factor=0.500001)]
    assert merge_factors(printed, computed) == {
        ("chem", "ayla", ""): 1 / 3,
        ("chem", "jorge", ""): 0.5,
    }
