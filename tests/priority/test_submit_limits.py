"""Limits that refuse a job at submission."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.submission import refusing_limit
from fairbank.priority.limits.usage import AssociationLimits, LimitedJob, LimitUsage, QosLimits
from tests.priority.starting_jobs import LIMITS, chain, holding_limit, starting_job, tres

LENIENT, STRICT = QosLimits(name="normal"), QosLimits(name="normal", deny_on_limit=True)


def refused(job: LimitedJob, tasks: int = 1, enforced: Enforced = LIMITS) -> str | None:
    result = refusing_limit(job, enforced, tasks)
    return result.reason if result else None


# --- how many are submitted ---


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (LimitKind.GRP_SUBMIT_JOBS, "QOSGrpSubmitJobsLimit"),
        (LimitKind.MAX_SUBMIT_JOBS_PER_USER, "QOSMaxSubmitJobPerUserLimit"),
        (LimitKind.MAX_SUBMIT_JOBS_PER_ACCOUNT, "MaxSubmitJobsPerAccount"),
    ],
)
def test_qos_submit_limit(kind: LimitKind, expected: str) -> None:
    busy = LimitUsage(submitted=4)
    job = starting_job(
        qos=QosLimits(
            name="normal",
            limits=AssociationLimits(jobs={kind: 6}),
            used=busy,
            of_user=busy,
            of_account=busy,
        )
    )
    assert (refused(job, 2), refused(job, 3)) == (None, expected)
    assert holding_limit(job, LIMITS) is None
    assert refused(job, 3, Enforced(limits=False)) is None


@pytest.mark.parametrize(
    ("kind", "where", "expected"),
    [
        (LimitKind.GRP_SUBMIT_JOBS, "user", "AssocGrpSubmitJobsLimit"),
        (LimitKind.GRP_SUBMIT_JOBS, "account", "AssocGrpSubmitJobsLimit"),
        (LimitKind.MAX_SUBMIT_JOBS, "user", "AssocMaxSubmitJobLimit"),
        (LimitKind.MAX_SUBMIT_JOBS, "account", None),
    ],
)
def test_association_submit_limit(kind: LimitKind, where: str, expected: str | None) -> None:
    limits, busy = {where: AssociationLimits(jobs={kind: 5})}, LimitUsage(submitted=5)
    links = chain(
        limits.get("user", AssociationLimits()),
        limits.get("account", AssociationLimits()),
        used=busy,
        of_account=busy,
    )
    assert refused(starting_job(chain=links, qos=LENIENT)) == expected


def test_qos_submit_limit_overrides_association() -> None:
    links = chain(user=AssociationLimits(jobs={LimitKind.MAX_SUBMIT_JOBS: 0}))
    wide = QosLimits(
        name="normal", limits=AssociationLimits(jobs={LimitKind.MAX_SUBMIT_JOBS_PER_USER: 9})
    )
    assert refused(starting_job(chain=links, qos=LENIENT)) == "AssocMaxSubmitJobLimit"
    assert refused(starting_job(chain=links, qos=wide)) is None


# --- what can never start ---

NEVER = [
    (tres(LimitKind.GRP_TRES, cpu=9), "GrpCpuLimit"),
    (tres(LimitKind.GRP_TRES_MINS, cpu=299), "GrpCPUMinutesLimit"),
    (tres(LimitKind.GRP_TRES_RUN_MINS, cpu=299), "GrpCPURunMinutesLimit"),
    (tres(LimitKind.MAX_TRES, cpu=9), "MaxCpuPerJobLimit"),
    (tres(LimitKind.MAX_TRES_PER_NODE, cpu=9), "MaxCpuPerNode"),
    (tres(LimitKind.MAX_TRES_MINS, cpu=299), "MaxCpuMinutesPerJobLimit"),
    (AssociationLimits(wall={LimitKind.GRP_WALL: 29}), "GrpWallLimit"),
    (AssociationLimits(wall={LimitKind.MAX_WALL: 29}), "MaxWallDurationPerJobLimit"),
]


@pytest.mark.parametrize(("limits", "expected"), NEVER, ids=[expected for _, expected in NEVER])
def test_deny_on_limit_refuses_jobs_that_can_never_start(
    limits: AssociationLimits, expected: str
) -> None:
    by_association = chain(user=limits)
    assert refused(starting_job(chain=by_association, qos=LENIENT)) is None
    assert refused(starting_job(chain=by_association, qos=STRICT)) == f"Assoc{expected}"
    assert refused(starting_job(chain=by_association)) == f"Assoc{expected}"
    assert refused(starting_job(qos=QosLimits(name="normal", limits=limits))) is None
    assert (
        refused(starting_job(qos=QosLimits(name="normal", limits=limits, deny_on_limit=True)))
        == f"QOS{expected}"
    )
    assert (
        refused(starting_job({"cpu": 9, "node": 1}, limit_minutes=29, chain=by_association)) is None
    )


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (tres(LimitKind.MAX_TRES_PER_USER, cpu=9), "QOSMaxCpuPerUserLimit"),
        (tres(LimitKind.MAX_TRES_PER_ACCOUNT, cpu=9), "MaxCpuPerAccount"),
        (tres(LimitKind.MIN_TRES, cpu=11), "QOSMinCpuNotSatisfied"),
    ],
)
def test_deny_on_limit_covers_limits_of_qos_only(limits: AssociationLimits, expected: str) -> None:
    assert (
        refused(starting_job(qos=QosLimits(name="normal", limits=limits, deny_on_limit=True)))
        == expected
    )
    assert refused(starting_job(qos=QosLimits(name="normal", limits=limits))) is None


def test_usage_of_others_does_not_refuse_a_job() -> None:
    busy = LimitUsage(counts={"cpu": 10}, seconds={"cpu": 6e9}, run_seconds={"cpu": 6_000_000})
    limits = AssociationLimits(
        tres={
            kind: {"cpu": 300}
            for kind in (LimitKind.GRP_TRES, LimitKind.GRP_TRES_MINS, LimitKind.GRP_TRES_RUN_MINS)
        }
    )
    assert refused(starting_job(chain=chain(user=limits, used=busy))) is None


@pytest.mark.parametrize("more", [{"limit_minutes": None}, {"time_overridden": True}])
def test_time_limits_refuse_only_an_explicit_time_limit(more: dict[str, Any]) -> None:
    links = chain(
        user=AssociationLimits(
            tres={LimitKind.MAX_TRES_MINS: {"cpu": 1}},
            wall={LimitKind.MAX_WALL: 1, LimitKind.GRP_WALL: 1},
        )
    )
    assert refused(starting_job(chain=links)) is not None
    assert refused(starting_job(chain=links, **more)) is None


def test_partition_qos_can_deny() -> None:
    links = chain(user=tres(LimitKind.MAX_TRES, cpu=1))
    denying = QosLimits(name="of the partition", deny_on_limit=True)
    assert (
        refused(starting_job(chain=links, qos=LENIENT, partition_qos=denying))
        == "AssocMaxCpuPerJobLimit"
    )
