"""TRES limits that hold a job back: each at its edge, under Slurm's names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import UNLIMITED_MINUTES
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import ASSOC, LimitKind
from fairbank.priority.limits.usage import (
    AssociationLimits,
    LimitedJob,
    LimitUsage,
    Link,
    QosLimits,
)
from tests.priority.starting_jobs import (
    ACCOUNT,
    BUDGET,
    HALF,
    LIMITS,
    ROOT,
    SAFE,
    USER,
    chain,
    holding_limit,
    reason,
    starting_job,
    tres,
)

# --- V13: GrpTRESMins=cpu=1000, 500 minutes used, 200 running ---


def charged(minutes: int, **more: Any) -> LimitedJob:
    return starting_job(limit_minutes=minutes, chain=chain(account=BUDGET, of_account=HALF), **more)


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [(30, None), (31, "AssocGrpCPUMinutesLimit"), (101, "AssocGrpCPUMinutesLimit")],
)
def test_safe_starts_only_jobs_within_the_budget(minutes: int, expected: str | None) -> None:
    assert reason(charged(minutes), SAFE) == expected
    assert reason(charged(minutes), LIMITS) is None


def test_limit_that_holds_a_job_states_its_figures() -> None:
    held = holding_limit(charged(31), SAFE)
    assert held is not None
    assert (held.owner, held.name, held.tres) == (ASSOC, ACCOUNT, "cpu")
    assert (held.limit, held.used, held.running, held.requested) == (1_000, 500, 200, 310)
    assert (
        str(held)
        == "association physics allows 1,000 CPU-minutes (GrpTRESMins), 500 used and 200 reserved"
        " by running jobs; this job asks for 310"
    )


@pytest.mark.parametrize(
    ("seconds", "held"), [(59_999.0, False), (60_000.0, True), (75_000.0, True)]
)
def test_exhausted_budget_holds_with_or_without_safe(seconds: float, held: bool) -> None:
    used = LimitUsage(seconds={"cpu": seconds})
    job = starting_job(chain=chain(account=BUDGET, of_account=used))
    assert (reason(job, LIMITS) == "AssocGrpCPUMinutesLimit") is held
    assert (
        reason(starting_job({"node": 1}, chain=chain(account=BUDGET, of_account=used)), SAFE)
        is None
    )


def test_budget_of_root_holds_jobs() -> None:
    root = Link(name=ROOT, limits=BUDGET, used=LimitUsage(seconds={"cpu": 60_000.0}))
    held = holding_limit(starting_job(chain=(Link(name=USER), root)), LIMITS)
    assert held is not None
    assert held.name == ROOT


def test_job_without_time_limit_never_starts_under_safe() -> None:
    assert reason(charged(UNLIMITED_MINUTES), SAFE) == "AssocGrpCPUMinutesLimit"
    assert reason(charged(UNLIMITED_MINUTES), LIMITS) is None


@pytest.mark.parametrize(
    ("default", "longest", "held"),
    [(30, 60, False), (None, 30, False), (None, 31, True), (None, UNLIMITED_MINUTES, True)],
)
def test_job_without_time_limit_uses_partition_limit(
    default: int | None, longest: int, held: bool
) -> None:
    job = starting_job(
        limit_minutes=None,
        partition_default_minutes=default,
        partition_max_minutes=longest,
        chain=chain(account=BUDGET, of_account=HALF),
    )
    assert (reason(job, SAFE) is not None) is held


@pytest.mark.parametrize(
    ("factor", "as_charged", "held"),
    [
        (2.0, False, False),
        (2.0, True, True),
        (1.04, True, True),
        (1.03, True, False),
        (0.0, False, False),
        (-1.0, True, False),
    ],
)
def test_usage_factor_counts_in_limits_only_with_flag(
    factor: float, as_charged: bool, held: bool
) -> None:
    job = charged(
        30, qos=QosLimits(name="normal", usage_factor=factor, usage_factor_safe=as_charged)
    )
    assert (reason(job, SAFE) is not None) is held


def test_qos_with_usage_factor_0_is_not_held_by_used_minutes() -> None:
    full = chain(account=BUDGET, of_account=LimitUsage(seconds={"cpu": 6e9}))
    assert (
        reason(starting_job(chain=full, qos=QosLimits(name="free", usage_factor=0.0)), SAFE) is None
    )
    assert reason(starting_job(chain=full), SAFE) == "AssocGrpCPUMinutesLimit"


# --- the other limits on TRES, each at its edge ---

RUNNING = LimitUsage(
    counts={"cpu": 90, "node": 3, "mem": 100},
    run_seconds={"cpu": 42_059},
    nodes=frozenset({"n1", "n2", "n3"}),
)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (tres(LimitKind.GRP_TRES, cpu=100), None),
        (tres(LimitKind.GRP_TRES, cpu=99), "AssocGrpCpuLimit"),
        (tres(LimitKind.GRP_TRES, cpu=9), "AssocGrpCpuLimit"),
        (tres(LimitKind.GRP_TRES, mem=50), None),
        (tres(LimitKind.GRP_TRES, energy=0), None),
        (tres(LimitKind.GRP_TRES_RUN_MINS, cpu=1_000), None),
        (tres(LimitKind.GRP_TRES_RUN_MINS, cpu=999), "AssocGrpCPURunMinutesLimit"),
        (tres(LimitKind.MAX_TRES_MINS, cpu=300), None),
        (tres(LimitKind.MAX_TRES_MINS, cpu=299), "AssocMaxCpuMinutesPerJobLimit"),
        (tres(LimitKind.MAX_TRES, cpu=10), None),
        (tres(LimitKind.MAX_TRES, cpu=9), "AssocMaxCpuPerJobLimit"),
        (tres(LimitKind.MAX_TRES_PER_NODE, cpu=5), None),
        (tres(LimitKind.MAX_TRES_PER_NODE, cpu=4), "AssocMaxCpuPerNode"),
    ],
)
def test_each_limit_of_an_association_holds(
    limits: AssociationLimits, expected: str | None
) -> None:
    counts = {"cpu": 10, "node": 2, "energy": 7}
    assert reason(starting_job(counts, chain=chain(user=limits, used=RUNNING)), LIMITS) == expected
    assert reason(
        starting_job(counts, chain=chain(user=limits, used=RUNNING), overridden=frozenset({"cpu"})),
        LIMITS,
    ) == (expected if LimitKind.GRP_TRES_RUN_MINS in limits.tres else None)


def test_only_group_limits_of_accounts_apply() -> None:
    own = AssociationLimits(
        tres={
            kind: {"cpu": 0}
            for kind in (LimitKind.MAX_TRES, LimitKind.MAX_TRES_MINS, LimitKind.MAX_TRES_PER_NODE)
        },
        jobs={LimitKind.MAX_JOBS: 0},
    )
    assert reason(starting_job(chain=chain(account=own))) is None


@pytest.mark.parametrize(
    ("limits", "of_user", "of_account", "expected"),
    [
        (tres(LimitKind.MIN_TRES, cpu=10), LimitUsage(), LimitUsage(), None),
        (tres(LimitKind.MIN_TRES, cpu=11), LimitUsage(), LimitUsage(), "QOSMinCpuNotSatisfied"),
        (tres(LimitKind.MIN_TRES, gres_gpu=1), LimitUsage(), LimitUsage(), "QOSMinGRES"),
        (tres(LimitKind.MAX_TRES_PER_USER, cpu=100), RUNNING, LimitUsage(), None),
        (tres(LimitKind.MAX_TRES_PER_USER, cpu=99), RUNNING, LimitUsage(), "QOSMaxCpuPerUserLimit"),
        (tres(LimitKind.MAX_TRES_PER_ACCOUNT, cpu=99), RUNNING, LimitUsage(), None),
        (tres(LimitKind.MAX_TRES_PER_ACCOUNT, cpu=99), LimitUsage(), RUNNING, "MaxCpuPerAccount"),
        (
            tres(LimitKind.MAX_TRES_RUN_MINS_PER_USER, cpu=999),
            RUNNING,
            LimitUsage(),
            "MaxCpuRunMinsPerUser",
        ),
        (tres(LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT, cpu=1_000), LimitUsage(), RUNNING, None),
        (
            tres(LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT, cpu=999),
            LimitUsage(),
            RUNNING,
            "MaxCpuRunMinsPerAccount",
        ),
    ],
)
def test_limits_of_qos_only(
    limits: AssociationLimits, of_user: LimitUsage, of_account: LimitUsage, expected: str | None
) -> None:
    qos = QosLimits(name="normal", limits=limits, of_user=of_user, of_account=of_account)
    assert reason(starting_job(qos=qos)) == expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [({"n1", "n2"}, None), ({"n3", "n4"}, None), ({"n4", "n5"}, "AssocGrpNodeLimit")],
    ids=["all used already", "one new", "two new"],
)
def test_node_used_by_group_counts_once(nodes: set[str], expected: str | None) -> None:
    limits = tres(LimitKind.GRP_TRES, node=4)
    assert (
        reason(
            starting_job(
                {"cpu": 1, "node": 2},
                nodes=frozenset(nodes),
                chain=chain(user=limits, used=RUNNING),
            )
        )
        == expected
    )


def test_built_in_tres_are_checked_first() -> None:
    limits = AssociationLimits(tres={LimitKind.MAX_TRES: {"gres/gpu": 0, "node": 0, "mem": 0}})
    assert (
        reason(starting_job({"gres/gpu": 1, "node": 1, "mem": 1}, chain=chain(user=limits)))
        == "AssocMaxMemPerJob"
    )


# --- bad input ---


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_invalid_amount_is_named(bad: float) -> None:
    with pytest.raises(InvalidInput) as raised:
        LimitUsage(seconds={"cpu": 1.0, "mem": bad})
    assert raised.value.field == "seconds[mem]"
    with pytest.raises(InvalidInput) as raised:
        tres(LimitKind.GRP_TRES, cpu=-1)
    assert (raised.value.field, raised.value.remedy) == (
        "GrpTRES[cpu]",
        "a number from 0 up; leave out what is not limited",
    )
    with pytest.raises(InvalidInput) as raised:
        AssociationLimits(wall={LimitKind.GRP_WALL: -1})
    assert raised.value.field == "limit[GrpWall]"


# --- laws ---

amounts = st.integers(0, 2_000)


@given(amounts, amounts, amounts, st.integers(1, 50), st.integers(1, 100), st.booleans())
def test_limits_are_monotonic(
    limit: int, used: int, running: int, cpus: int, minutes: int, safe: bool
) -> None:
    def held(limit: int, used: int, cpus: int) -> bool:
        taken = LimitUsage(seconds={"cpu": used * 60.0}, run_seconds={"cpu": running * 60})
        links = chain(account=tres(LimitKind.GRP_TRES_MINS, cpu=limit), of_account=taken)
        return (
            holding_limit(
                starting_job({"cpu": cpus}, limit_minutes=minutes, chain=links), Enforced(safe=safe)
            )
            is not None
        )

    before = held(limit, used, cpus)
    assert before or not (
        held(limit + 1, used, cpus)
        or held(limit, max(used - 1, 0), cpus)
        or held(limit, used, cpus - 1)
    )
    assert not safe or before == (used >= limit or cpus * minutes + running > limit - used)
