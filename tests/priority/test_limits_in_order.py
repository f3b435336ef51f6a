"""Limits on jobs and wall time, the order of limits, and limits that end a running job."""

from __future__ import annotations

import pytest

from fairbank.core.slurm_numbers import UNLIMITED_MINUTES
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import QOS, LimitKind
from fairbank.priority.limits.start import limit_tests
from fairbank.priority.limits.submission import ending_limit
from fairbank.priority.limits.usage import AssociationLimits, LimitUsage, Link, QosLimits
from tests.priority.starting_jobs import (
    ACCOUNT,
    BUDGET,
    LIMITS,
    ROOT,
    SAFE,
    USER,
    chain,
    reason,
    starting_job,
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
def test_job_count_limits_of_associations(kind: LimitKind, where: str, expected: str) -> None:
    limits, busy = (
        AssociationLimits(jobs={kind: 5}),
        {"used": LimitUsage(jobs=5), "of_account": LimitUsage(jobs=5)},
    )
    job = starting_job(chain=chain(**{where: limits}, **busy))  # type: ignore[arg-type]
    assert reason(job) == expected
    assert (
        reason(
            starting_job(
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
def test_job_count_limits_of_qos(kind: LimitKind, expected: str) -> None:
    def qos(jobs: int) -> QosLimits:
        busy = LimitUsage(jobs=jobs)
        return QosLimits(
            name="normal",
            limits=AssociationLimits(jobs={kind: 5}),
            used=busy,
            of_user=busy,
            of_account=busy,
        )

    assert reason(starting_job(qos=qos(4))) is None
    assert reason(starting_job(qos=qos(5))) == expected


@pytest.mark.parametrize("kind", [LimitKind.MAX_JOBS_PER_USER, LimitKind.MAX_JOBS_PER_ACCOUNT])
def test_qos_job_limit_overrides_association(kind: LimitKind) -> None:
    links = chain(user=AssociationLimits(jobs={LimitKind.MAX_JOBS: 1}), used=LimitUsage(jobs=1))
    assert reason(starting_job(chain=links)) == "AssocMaxJobsLimit"
    assert (
        reason(
            starting_job(
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
def test_group_wall_time_limit(
    used_seconds: float, minutes: int | None, enforced: Enforced, expected: str | None
) -> None:
    limits, used = (
        AssociationLimits(wall={LimitKind.GRP_WALL: 100}),
        LimitUsage(wall_seconds=used_seconds),
    )
    by_association = starting_job(
        limit_minutes=minutes, chain=chain(account=limits, of_account=used)
    )
    by_qos = starting_job(
        limit_minutes=minutes, qos=QosLimits(name="normal", limits=limits, used=used)
    )
    assert (reason(by_association, enforced), reason(by_qos, enforced)) == (
        (f"Assoc{expected}", f"QOS{expected}") if expected else (None, None)
    )


def test_job_wall_time_limit() -> None:
    limits = AssociationLimits(wall={LimitKind.MAX_WALL: 30})
    assert reason(starting_job(limit_minutes=30, chain=chain(user=limits))) is None
    assert reason(starting_job(limit_minutes=None, chain=chain(user=limits))) is None
    assert (
        reason(starting_job(limit_minutes=31, chain=chain(user=limits)))
        == "AssocMaxWallDurationPerJobLimit"
    )
    assert reason(starting_job(limit_minutes=31, chain=chain(account=limits))) is None
    assert (
        reason(starting_job(limit_minutes=31, qos=QosLimits(name="normal", limits=limits)))
        == "QOSMaxWallDurationPerJobLimit"
    )


def test_time_limit_set_by_administrator_is_exempt() -> None:
    limits = AssociationLimits(wall={LimitKind.MAX_WALL: 1, LimitKind.GRP_WALL: 1})
    job = starting_job(chain=chain(user=limits), qos=QosLimits(name="normal", limits=limits))
    assert reason(job) == "QOSMaxWallDurationPerJobLimit"
    assert (
        reason(
            starting_job(
                chain=chain(user=limits),
                qos=QosLimits(name="normal", limits=limits),
                time_overridden=True,
            ),
            SAFE,
        )
        is None
    )


# --- who goes before whom ---


def test_qos_limit_overrides_association_per_tres() -> None:
    links = chain(account=tres(LimitKind.GRP_TRES, cpu=0, mem=0))
    wide = QosLimits(name="normal", limits=tres(LimitKind.GRP_TRES, cpu=1_000))
    assert reason(starting_job({"cpu": 1}, chain=links)) == "AssocGrpCpuLimit"
    assert reason(starting_job({"cpu": 1}, chain=links, qos=wide)) is None
    assert reason(starting_job({"cpu": 1, "mem": 1}, chain=links, qos=wide)) == "AssocGrpMemLimit"


@pytest.mark.parametrize("over_partition", [False, True])
def test_partition_qos_takes_precedence_unless_overridden(over_partition: bool) -> None:
    narrow = QosLimits(
        name="normal", limits=tres(LimitKind.MAX_TRES, cpu=1), over_partition=over_partition
    )
    wide = QosLimits(name="of the partition", limits=tres(LimitKind.MAX_TRES, cpu=100))
    assert reason(starting_job(qos=narrow, partition_qos=wide)) == (
        "QOSMaxCpuPerJobLimit" if over_partition else None
    )


def test_qos_of_job_and_partition_is_checked_once() -> None:
    qos = QosLimits(name="normal")
    assert starting_job(qos=qos, partition_qos=qos).qoses() == (qos,)
    assert starting_job(partition_qos=qos).qoses() == (qos,)
    assert starting_job().qoses() == ()


def test_limit_factor_scales_only_association_tres_limits() -> None:
    limits = AssociationLimits(
        tres={
            LimitKind.GRP_TRES: {"cpu": 5},
            LimitKind.MAX_TRES: {"cpu": 5},
            LimitKind.MAX_TRES_MINS: {"cpu": 299},
        }
    )
    assert reason(starting_job(chain=chain(user=limits))) == "AssocGrpCpuLimit"
    stretched = QosLimits(name="normal", limit_factor=2.0)
    assert (
        reason(starting_job(chain=chain(user=limits), qos=stretched))
        == "AssocMaxCpuMinutesPerJobLimit"
    )
    assert (
        reason(
            starting_job(chain=chain(user=limits), qos=QosLimits(name="normal", limit_factor=0.0))
        )
        == "AssocGrpCpuLimit"
    )


def test_job_and_wall_limits_are_checked_before_nodes() -> None:
    limits = AssociationLimits(jobs={LimitKind.MAX_JOBS: 0}, tres={LimitKind.MAX_TRES: {"cpu": 0}})
    job = starting_job(chain=chain(user=limits))
    first, then = (test.reason for test in limit_tests(job, LIMITS) if test.holds)
    assert (first, then, reason(job)) == (
        "AssocMaxJobsLimit",
        "AssocMaxCpuPerJobLimit",
        "AssocMaxJobsLimit",
    )


def test_unenforced_limits_do_not_hold() -> None:
    limits = AssociationLimits(jobs={LimitKind.MAX_JOBS: 0}, tres={LimitKind.MAX_TRES: {"cpu": 0}})
    assert reason(starting_job(chain=chain(user=limits)), Enforced(limits=False)) is None


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
def test_enforcement_flags_are_parsed(text: str, expected: tuple[bool, bool]) -> None:
    result = Enforced.parse(text)
    assert (result.limits, result.safe) == expected


# --- what ends running jobs ---


def test_exhausted_budget_ends_running_jobs_unless_safe() -> None:
    links = chain(account=BUDGET, of_account=LimitUsage(seconds={"cpu": 60_000.0}))
    held = ending_limit(starting_job(chain=links), 5, LIMITS)
    assert held is not None
    assert (held.name, held.limit, held.used) == (ACCOUNT, 1_000, 1_000)
    assert ending_limit(starting_job(chain=links), 5, SAFE) is None
    assert ending_limit(starting_job({"node": 1}, chain=links), 5, LIMITS) is None
    assert (
        ending_limit(
            starting_job(
                chain=chain(account=BUDGET, of_account=LimitUsage(seconds={"cpu": 59_999.0}))
            ),
            5,
            LIMITS,
        )
        is None
    )


def test_root_limit_holds_but_ends_no_job() -> None:
    root = Link(name=ROOT, limits=BUDGET, used=LimitUsage(seconds={"cpu": 60_000.0}))
    job = starting_job(chain=(Link(name=USER), root))
    assert (reason(job), ending_limit(job, 5, LIMITS)) == ("AssocGrpCPUMinutesLimit", None)


@pytest.mark.parametrize(("minutes", "ends"), [(29, False), (30, True)])
def test_job_beyond_its_tres_minutes_ends(minutes: int, ends: bool) -> None:
    job = starting_job(chain=chain(user=tres(LimitKind.MAX_TRES_MINS, cpu=300)))
    assert (ending_limit(job, minutes, LIMITS) is not None) is ends
    assert (
        ending_limit(
            starting_job(chain=chain(account=tres(LimitKind.MAX_TRES_MINS, cpu=300))), 60, LIMITS
        )
        is None
    )


def test_exhausted_wall_time_ends_jobs_qos_first() -> None:
    spent, limits = (
        LimitUsage(wall_seconds=6_000.0),
        AssociationLimits(wall={LimitKind.GRP_WALL: 100}),
    )
    assert (
        ending_limit(starting_job(chain=chain(account=limits, of_account=spent)), 1, LIMITS)
        is not None
    )
    wide = QosLimits(name="normal", limits=AssociationLimits(wall={LimitKind.GRP_WALL: 1_000}))
    assert (
        ending_limit(
            starting_job(chain=chain(account=limits, of_account=spent), qos=wide), 1, LIMITS
        )
        is None
    )
    held = ending_limit(
        starting_job(qos=QosLimits(name="normal", limits=limits, used=spent)), 1, LIMITS
    )
    assert held is not None
    assert held.owner == QOS
