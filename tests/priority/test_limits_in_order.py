"""Limits on jobs and wall time, the order of limits, and limits that end a running job."""

from __future__ import annotations

import pytest

from fairbank.core.slurm_numbers import UNLIMITED_MINUTES
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import QOS, LimitKind
from fairbank.priority.limits.start import after_nodes, before_nodes
from fairbank.priority.limits.submission import ending
from fairbank.priority.limits.usage import AssociationLimits, LimitUsage, Link, QosLimits
from tests.priority.starting_jobs import (
    ACCOUNT,
    BUDGET,
    LIMITS,
    ROOT,
    SAFE,
    USER,
    asking,
    chain,
    reason,
    tres,
)

# --- jobs and wall time ---


@pytest.mark.parametrize(
    ("kind", "where", "expected"),
    [
        (LimitKind.GRP_JOBS, "user", "AssocGrpJobsLimit"),
        (LimitKind.GRP_JOBS, "account", "AssocGrpJobsLimit"),
        (LimitKind.MAX_JOBS, "user", "AssocMaxJobsLimit"),
    ],
)
def test_jobs_of_associations(kind: LimitKind, where: str, expected: str) -> None:
    limits, busy = (
        AssociationLimits(jobs={kind: 5}),
        {"used": LimitUsage(jobs=5), "of_account": LimitUsage(jobs=5)},
    )
    asked = asking(chain=chain(**{where: limits}, **busy))  # type: ignore[arg-type]
    assert reason(asked) == expected
    assert (
        reason(
            asking(
                chain=chain(
                    **{where: limits}, used=LimitUsage(jobs=4), of_account=LimitUsage(jobs=4)
                )
            )
        )
        is None
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (LimitKind.GRP_JOBS, "QOSGrpJobsLimit"),
        (LimitKind.MAX_JOBS_PER_USER, "QOSMaxJobsPerUserLimit"),
        (LimitKind.MAX_JOBS_PER_ACCOUNT, "MaxJobsPerAccount"),
    ],
)
def test_jobs_of_a_qos(kind: LimitKind, expected: str) -> None:
    def qos(jobs: int) -> QosLimits:
        busy = LimitUsage(jobs=jobs)
        return QosLimits(
            name="normal",
            limits=AssociationLimits(jobs={kind: 5}),
            used=busy,
            of_user=busy,
            of_account=busy,
        )

    assert reason(asking(qos=qos(4))) is None
    assert reason(asking(qos=qos(5))) == expected


@pytest.mark.parametrize("kind", [LimitKind.MAX_JOBS_PER_USER, LimitKind.MAX_JOBS_PER_ACCOUNT])
def test_where_a_qos_counts_jobs_the_association_does_not(kind: LimitKind) -> None:
    links = chain(user=AssociationLimits(jobs={LimitKind.MAX_JOBS: 1}), used=LimitUsage(jobs=1))
    assert reason(asking(chain=links)) == "AssocMaxJobsLimit"
    assert (
        reason(
            asking(
                chain=links, qos=QosLimits(name="normal", limits=AssociationLimits(jobs={kind: 9}))
            )
        )
        is None
    )


@pytest.mark.parametrize(
    ("used_seconds", "minutes", "enforced", "expected"),
    [
        (4_259.0, 30, SAFE, None),
        (4_260.0, 30, SAFE, "GrpWallLimit"),
        (4_260.0, 30, LIMITS, None),
        (5_999.0, 30, LIMITS, None),
        (6_000.0, 30, LIMITS, "GrpWallLimit"),
        (0.0, UNLIMITED_MINUTES, SAFE, "GrpWallLimit"),
        (60.0, UNLIMITED_MINUTES, SAFE, None),
        (4_260.0, None, SAFE, "GrpWallLimit"),
        (0.0, None, SAFE, None),
    ],
)
def test_wall_time_of_a_group(
    used_seconds: float, minutes: int | None, enforced: Enforced, expected: str | None
) -> None:
    limits, used = (
        AssociationLimits(wall={LimitKind.GRP_WALL: 100}),
        LimitUsage(wall_seconds=used_seconds),
    )
    by_association = asking(limit_minutes=minutes, chain=chain(account=limits, of_account=used))
    by_qos = asking(limit_minutes=minutes, qos=QosLimits(name="normal", limits=limits, used=used))
    assert (reason(by_association, enforced), reason(by_qos, enforced)) == (
        (f"Assoc{expected}", f"QOS{expected}") if expected else (None, None)
    )


def test_wall_time_of_a_job() -> None:
    limits = AssociationLimits(wall={LimitKind.MAX_WALL: 30})
    assert reason(asking(limit_minutes=30, chain=chain(user=limits))) is None
    assert reason(asking(limit_minutes=None, chain=chain(user=limits))) is None
    assert (
        reason(asking(limit_minutes=31, chain=chain(user=limits)))
        == "AssocMaxWallDurationPerJobLimit"
    )
    assert reason(asking(limit_minutes=31, chain=chain(account=limits))) is None
    assert (
        reason(asking(limit_minutes=31, qos=QosLimits(name="normal", limits=limits)))
        == "QOSMaxWallDurationPerJobLimit"
    )


def test_an_administrator_sets_limits_on_time_aside() -> None:
    limits = AssociationLimits(wall={LimitKind.MAX_WALL: 1, LimitKind.GRP_WALL: 1})
    job = asking(chain=chain(user=limits), qos=QosLimits(name="normal", limits=limits))
    assert reason(job) == "QOSMaxWallDurationPerJobLimit"
    assert (
        reason(
            asking(
                chain=chain(user=limits),
                qos=QosLimits(name="normal", limits=limits),
                time_overridden=True,
            ),
            SAFE,
        )
        is None
    )


# --- who goes before whom ---


def test_a_limit_of_the_qos_takes_the_place_of_the_associations_tres_by_tres() -> None:
    links = chain(account=tres(LimitKind.GRP_TRES, cpu=0, mem=0))
    wide = QosLimits(name="normal", limits=tres(LimitKind.GRP_TRES, cpu=1_000))
    assert reason(asking({"cpu": 1}, chain=links)) == "AssocGrpCpuLimit"
    assert reason(asking({"cpu": 1}, chain=links, qos=wide)) is None
    assert reason(asking({"cpu": 1, "mem": 1}, chain=links, qos=wide)) == "AssocGrpMemLimit"


@pytest.mark.parametrize("over_partition", [False, True])
def test_the_qos_of_the_partition_goes_first_unless_the_jobs_own_goes_over_it(
    over_partition: bool,
) -> None:
    narrow = QosLimits(
        name="normal", limits=tres(LimitKind.MAX_TRES, cpu=1), over_partition=over_partition
    )
    wide = QosLimits(name="of the partition", limits=tres(LimitKind.MAX_TRES, cpu=100))
    assert reason(asking(qos=narrow, partition_qos=wide)) == (
        "QOSMaxCpuPerJobLimit" if over_partition else None
    )


def test_a_qos_that_is_also_the_partitions_is_looked_at_once() -> None:
    qos = QosLimits(name="normal")
    assert asking(qos=qos, partition_qos=qos).qoses() == (qos,)
    assert asking(partition_qos=qos).qoses() == (qos,)
    assert asking().qoses() == ()


def test_a_limit_factor_stretches_the_limits_of_associations_on_tres_alone() -> None:
    limits = AssociationLimits(
        tres={
            LimitKind.GRP_TRES: {"cpu": 5},
            LimitKind.MAX_TRES: {"cpu": 5},
            LimitKind.MAX_TRES_MINS: {"cpu": 299},
        }
    )
    assert reason(asking(chain=chain(user=limits))) == "AssocGrpCpuLimit"
    stretched = QosLimits(name="normal", limit_factor=2.0)
    assert (
        reason(asking(chain=chain(user=limits), qos=stretched)) == "AssocMaxCpuMinutesPerJobLimit"
    )
    assert (
        reason(asking(chain=chain(user=limits), qos=QosLimits(name="normal", limit_factor=0.0)))
        == "AssocGrpCpuLimit"
    )


def test_jobs_and_wall_time_are_looked_at_before_nodes_are() -> None:
    limits = AssociationLimits(jobs={LimitKind.MAX_JOBS: 0}, tres={LimitKind.MAX_TRES: {"cpu": 0}})
    job = asking(chain=chain(user=limits))
    first, then = before_nodes(job, LIMITS), after_nodes(job, LIMITS)
    assert first is not None
    assert then is not None
    assert (first.reason, then.reason, reason(job)) == (
        "AssocMaxJobsLimit",
        "AssocMaxCpuPerJobLimit",
        "AssocMaxJobsLimit",
    )


def test_nothing_holds_where_limits_are_not_enforced() -> None:
    limits = AssociationLimits(jobs={LimitKind.MAX_JOBS: 0}, tres={LimitKind.MAX_TRES: {"cpu": 0}})
    assert reason(asking(chain=chain(user=limits)), Enforced(limits=False)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", (False, False)),
        ("associations,qos", (False, False)),
        ("associations,limits,qos", (True, False)),
        ("Safe", (True, True)),
        ("all", (True, True)),
    ],
)
def test_what_is_enforced_is_read(text: str, expected: tuple[bool, bool]) -> None:
    found = Enforced.parse(text)
    assert (found.limits, found.safe) == expected


# --- what ends running jobs ---


def test_when_the_budget_is_used_up_running_jobs_end_unless_safe() -> None:
    links = chain(account=BUDGET, of_account=LimitUsage(seconds={"cpu": 60_000.0}))
    held = ending(asking(chain=links), 5, LIMITS)
    assert held is not None
    assert (held.name, held.limit, held.used) == (ACCOUNT, 1_000, 1_000)
    assert ending(asking(chain=links), 5, SAFE) is None
    assert ending(asking({"node": 1}, chain=links), 5, LIMITS) is None
    assert (
        ending(
            asking(chain=chain(account=BUDGET, of_account=LimitUsage(seconds={"cpu": 59_999.0}))),
            5,
            LIMITS,
        )
        is None
    )


def test_root_ends_nothing_though_it_holds() -> None:
    root = Link(name=ROOT, limits=BUDGET, used=LimitUsage(seconds={"cpu": 60_000.0}))
    job = asking(chain=(Link(name=USER), root))
    assert (reason(job), ending(job, 5, LIMITS)) == ("AssocGrpCPUMinutesLimit", None)


@pytest.mark.parametrize(("minutes", "ends"), [(29, False), (30, True)])
def test_a_job_past_its_own_minutes_ends(minutes: int, ends: bool) -> None:
    job = asking(chain=chain(user=tres(LimitKind.MAX_TRES_MINS, cpu=300)))
    assert (ending(job, minutes, LIMITS) is not None) is ends
    assert (
        ending(asking(chain=chain(account=tres(LimitKind.MAX_TRES_MINS, cpu=300))), 60, LIMITS)
        is None
    )


def test_wall_time_that_is_used_up_ends_jobs_and_a_qos_goes_first() -> None:
    spent, limits = (
        LimitUsage(wall_seconds=6_000.0),
        AssociationLimits(wall={LimitKind.GRP_WALL: 100}),
    )
    assert ending(asking(chain=chain(account=limits, of_account=spent)), 1, LIMITS) is not None
    wide = QosLimits(name="normal", limits=AssociationLimits(wall={LimitKind.GRP_WALL: 1_000}))
    assert (
        ending(asking(chain=chain(account=limits, of_account=spent), qos=wide), 1, LIMITS) is None
    )
    held = ending(asking(qos=QosLimits(name="normal", limits=limits, used=spent)), 1, LIMITS)
    assert held is not None
    assert held.owner == QOS
