"""Priorities by factors, usage and fair share in the core."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import Forbidden
from fairbank.priority.fairshare.decay import Reset
from fairbank.priority.fairshare.tree import ShareAssociation
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord, QosLimits
from fairbank.priority.settings import (
    FairShare,
    Flag,
    MultifactorSettings,
    PrioritySettings,
    PriorityWeights,
)
from fairbank.wlm.controller.commands.order_lines import priority_lines
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.factors.accrue_times import accrue_time
from fairbank.wlm.core.factors.priorities import fair_shares
from tests.wlm.core.world import ALICE, BOB, OPERATOR, START, World, named

HOUR = 3_600


def world(*, half_life: int = 0, reset: Reset = Reset.NONE, **weights: Any) -> World:
    """Return a world with 8 CPUs whose jobs have these weights."""
    settings = PrioritySettings(
        factors=MultifactorSettings(weights=PriorityWeights(**weights)),
        fair_share=FairShare(half_life_seconds=half_life, reset=reset),
    )
    made = World(priority=settings)
    made.restart()  # sets the timer of the ticks
    return made


def priority(made: World, number: int) -> int:
    return made.job(number).request.priority


def factor(made: World, user: str) -> float:
    return fair_shares(made.core.state).factors()["bio", user, ""]


def test_age_raises_the_priority_at_each_tick() -> None:
    made = world(age=1_000)
    number = made.submit(cpus=4, nodes=2, held=True)
    made.request(ev.ReleaseJob(named(number)))
    assert priority(made, number) == 1
    made.advance(7 * 24 * HOUR // 2)
    assert priority(made, number) == pytest.approx(500, abs=1)


def test_only_eligible_jobs_are_listed_with_priorities() -> None:
    """As sprio of Slurm 22.05 leaves out its jobs 10 to 12 (tests/golden/slurm-22.05/waiting)."""
    made = world(age=1_000, partition=100)
    full = made.run_one(cpus=4, nodes=2, limit=HOUR)
    given, waiting = made.submit(cpus=4), made.submit(cpus=4)
    assert made.request(ev.UpdateJob(jobs=named(given), priority=7), OPERATOR) is None
    held, later = made.submit(held=True), made.submit(eligible=made.now.wall + HOUR)
    dependent = made.submit(dependency=f"afterok:{full}")
    made.settle()
    rows = {row.job: row.direct for row in priority_lines(made.core.state, made.now)}
    assert rows == {given: 7, waiting: None}
    made.request(ev.ReleaseJob(named(held)))
    made.request(ev.UpdateJob(jobs=named(later), eligible=0))
    made.request(ev.UpdateJob(jobs=named(dependent), dependencies=None))
    numbers = [row.job for row in priority_lines(made.core.state, made.now)]
    assert numbers == [given, waiting, held, later, dependent]


def test_user_who_has_used_less_goes_first() -> None:
    made = world(fairshare=1_000)
    first = made.run_one(cpus=4, nodes=2, limit=HOUR)
    made.advance(600)
    by_alice, by_bob = made.submit(caller=ALICE, cpus=4), made.submit(caller=BOB, cpus=4)
    made.advance(300)  # the first tick that knows both users
    assert priority(made, by_alice) < priority(made, by_bob)
    made.end(first)
    assert factor(made, "bob") > factor(made, "alice")


def test_account_may_have_blanks_if_none_is_enforced() -> None:
    made = world(fairshare=1_000)
    made.end(made.run_one(account="soil science", limit=HOUR))
    assert ("soil science", "alice", "") in fair_shares(made.core.state).factors()
    made.restart()
    assert made.state(made.run_one(account="soil science")) == "RUNNING"


def test_usage_is_counted_once_between_ticks_and_end() -> None:
    made = world(fairshare=1_000)
    number = made.run_one(cpus=4, nodes=2, limit=HOUR)
    made.advance(1_000)  # three ticks of 300 s
    made.end(number)
    (usage,) = made.core.state.usage.values()
    assert (usage.billing, usage.wall) == (8 * 1_000, 1_000)
    assert usage.tres["cpu"] == 8 * 1_000
    made.advance(HOUR)
    assert [one.billing for one in made.core.state.usage.values()] == [8 * 1_000]


def test_usage_halves_in_a_half_life() -> None:
    made = world(half_life=24 * HOUR, fairshare=1_000)
    number = made.run_one(cpus=4, nodes=2, limit=HOUR)
    made.advance(100)
    made.end(number)
    (before,) = made.core.state.usage.values()
    made.advance(24 * HOUR)
    (after,) = made.core.state.usage.values()
    # Slurm takes 0.693 for ln 2.
    assert after.billing / before.billing == pytest.approx(0.5, rel=0.01)


def test_reset_forgets_the_usage() -> None:
    made = world(reset=Reset.DAILY, fairshare=1_000)
    number = made.run_one(limit=HOUR)
    made.advance(100)
    made.end(number)
    made.advance(25 * HOUR)
    assert [one.billing for one in made.core.state.usage.values()] == [0]


def test_configured_shares_count() -> None:
    shares = (
        ShareAssociation("root"),
        ShareAssociation("bio", parent="root"),
        ShareAssociation("bio", "alice", shares=1),
        ShareAssociation("bio", "bob", shares=9),
    )
    weights = PriorityWeights(fairshare=1_000)
    made = World(
        priority=PrioritySettings(factors=MultifactorSettings(weights=weights)), shares=shares
    )
    made.restart()
    for caller in (ALICE, BOB):
        made.run_one(caller=caller, limit=HOUR)
    made.advance(300)
    assert factor(made, "bob") > factor(made, "alice")


def test_job_in_two_partitions_has_a_priority_in_each() -> None:
    partitions = [
        PartitionRules(name="main", is_default=True, factor=1),
        PartitionRules(name="fast", factor=10),
    ]
    weights = PriorityWeights(partition=1_000)
    made = World(
        *partitions, priority=PrioritySettings(factors=MultifactorSettings(weights=weights))
    )
    number = made.submit(partitions=("main", "fast"), held=True)
    assert made.job(number).request.priorities == (100, 1_000)


@pytest.mark.parametrize("how", ["update", "submission"])
def test_priority_of_an_operator_stays(how: str) -> None:
    made = world(age=1_000)
    first: dict[str, Any] = {"priority": 77} if how == "submission" else {}
    number = made.submit(caller=OPERATOR, held=True, **first)
    if how == "update":
        made.request(ev.UpdateJob(jobs=named(number), priority=77), OPERATOR)
    made.advance(HOUR)
    assert priority(made, number) == 77


def test_release_gives_the_priority_back_to_the_factors() -> None:
    made = world(age=1_000)
    number = made.submit(caller=OPERATOR, held=True, priority=77, cpus=4, nodes=2)
    made.request(ev.ReleaseJob(named(number)), OPERATOR)
    assert priority(made, number) == 1


def test_nice_lowers_the_priority() -> None:
    made = world(partition=1_000)
    number = made.submit(nice=100, held=True)
    assert priority(made, number) == 900


def test_operator_adds_a_site_factor_to_the_priority() -> None:
    made = world(partition=1_000)
    number = made.submit(nice=100, held=True)
    change = ev.UpdateJob(jobs=named(number), site_factor=50)
    assert isinstance(made.request(change), Forbidden)
    made.request(change, OPERATOR)
    assert priority(made, number) == 950
    made.request(ev.UpdateJob(jobs=named(number), nice=0))
    assert priority(made, number) == 1_050


def test_restart_keeps_usage_and_priorities() -> None:
    made = world(age=1_000, fairshare=1_000)
    made.run_one(cpus=4, nodes=2, limit=HOUR)
    made.submit(caller=BOB, cpus=4, nodes=2)
    made.advance(450)
    before = dict(made.core.state.usage)
    made.restart()
    assert made.core.state.usage == before


@pytest.mark.parametrize("is_safe", [False, True])
def test_job_is_ended_when_the_minutes_of_its_account_are_used_up(is_safe: bool) -> None:
    limits = AssociationLimits(tres={LimitKind.GRP_TRES_MINS: {"cpu": 60}})
    records = [
        LimitRecord(name="root"),
        LimitRecord(name="lab", parent="root", limits=limits),
        LimitRecord(name="bio", parent="lab"),
        LimitRecord(name="bio", user="alice", parent="bio"),
    ]
    made = World(
        priority=PrioritySettings(fair_share=FairShare(half_life_seconds=0, reset=Reset.DAILY)),
        associations={(one.name, one.user, one.partition): one for one in records},
        enforced=Enforced(limits=True, safe=is_safe),
    )
    made.restart()
    number = made.run_one(cpus=4, limit=14 * 60)
    made.advance(600)  # 40 CPU minutes
    waiting = made.submit(cpus=4, limit=7 * 60)
    made.settle()
    assert made.state(waiting) == ("PENDING" if is_safe else "RUNNING CONFIGURING")
    if is_safe:
        assert made.reason(waiting) == "AssocGrpCPUMinutesLimit"
        return
    made.begin_all()
    made.advance(300)  # 80 CPU minutes
    assert made.state(waiting) == "TIMEOUT COMPLETING"
    assert made.state(number) == "TIMEOUT COMPLETING"
    later = made.submit(cpus=1)
    made.settle()
    assert made.reason(later) == "AssocGrpCPUMinutesLimit"


def world_with_qos(flags: str = "", *, half_life: int = 0, **limits: Any) -> World:
    """Return a world whose partition has the QOS `night` with these limits."""
    night = QosLimits(name="night", limits=AssociationLimits(**limits))
    made = World(
        PartitionRules(name="main", is_default=True, partition_qos="night"),
        priority=PrioritySettings(fair_share=FairShare(half_life_seconds=half_life)),
        enforced=Enforced(limits=True),
        qos={"night": night, "day": QosLimits(name="day", usage_factor=2.0)},
        qos_flags={"night": frozenset(flags.split())},
    )
    made.restart()
    return made


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"tres": {LimitKind.GRP_TRES_MINS: {"cpu": 60}}}, "QOSGrpCPUMinutesLimit"),
        ({"wall": {LimitKind.GRP_WALL: 15}}, "QOSGrpWallLimit"),
    ],
)
def test_job_is_ended_when_the_minutes_of_its_qos_are_used_up(limits: Any, reason: str) -> None:
    made = world_with_qos(**limits)
    number = made.run_one(cpus=4, limit=HOUR, qos="day")  # the QOS of the partition counts, too
    made.advance(900)  # twice 60 CPU minutes, with the factor of the own QOS
    assert made.state(number) == "TIMEOUT COMPLETING"
    made.restart()
    later = made.submit(caller=BOB, cpus=1)
    made.settle()
    assert made.reason(later) == reason
    accounting = replace(made.settings.accounting, qos={"day": QosLimits(name="day")}, qos_flags={})
    made.settings = replace(made.settings, accounting=accounting)
    made.restart()
    made.advance(300)
    assert set(made.core.state.qos_usage) == {"day"}  # a QOS without settings has no usage


@pytest.mark.parametrize(("flags", "left"), [("", 0.5), ("NoDecay", 1.0)])
def test_usage_of_a_qos_decays_unless_it_has_no_decay(flags: str, left: float) -> None:
    made = world_with_qos(flags, half_life=HOUR)
    number = made.run_one(cpus=4, limit=HOUR, qos="night")
    made.advance(300)
    made.end(number)
    before = made.core.state.qos_usage["night"]
    assert before.wall == pytest.approx(300 * left ** (1 / 12), rel=1e-3)
    made.advance(HOUR)
    after = made.core.state.qos_usage["night"]
    assert after.wall == pytest.approx(before.wall * left, rel=1e-3)
    assert after.tres["cpu"] == pytest.approx(before.tres["cpu"] * left, rel=1e-3)


def accruing_world(qos: QosLimits) -> World:
    settings = PrioritySettings(factors=MultifactorSettings(weights=PriorityWeights(age=1_000)))
    made = World(priority=settings, enforced=Enforced(), qos={qos.name: qos})
    made.restart()
    return made


def accrue_times(made: World, *numbers: int) -> list[int]:
    return [made.job(number).accrued - START.wall for number in numbers]


def test_only_as_many_jobs_of_a_user_age_as_the_qos_allows() -> None:
    """The first to leave the queue frees a place, and the next one ages from then on."""
    limits = AssociationLimits(jobs={LimitKind.MAX_JOBS_ACCRUE_PER_USER: 2})
    made = accruing_world(QosLimits(name="normal", limits=limits))
    blocking = made.run_one(cpus=4, nodes=2, limit=24 * HOUR, qos="normal")
    jobs = [made.submit(cpus=4, nodes=2, qos="normal") for _ in range(4)]
    made.settle()
    assert accrue_times(made, *jobs) == [0, 0, -START.wall, -START.wall]
    made.advance(1_000)
    made.end(blocking)
    made.settle()
    made.advance(600)
    assert accrue_times(made, *jobs[1:]) == [0, 1_000, -START.wall]
    aged, young, waiting = (priority(made, number) for number in jobs[1:])
    assert aged > young >= waiting


def test_with_accrue_always_a_held_job_ages_since_its_submission() -> None:
    weights, flags = PriorityWeights(age=1_000), frozenset({Flag.ACCRUE_ALWAYS})
    factors = MultifactorSettings(weights=weights, flags=flags)
    made = World(priority=PrioritySettings(factors=factors))
    held = made.submit(held=True)
    made.advance(HOUR)
    assert accrue_time(made.core.state, made.job(held), made.now.wall) == START.wall
    made.settings = replace(made.settings, priority=PrioritySettings())
    made.restart()
    assert accrue_time(made.core.state, made.job(held), made.now.wall) == 0


def test_hold_and_requeue_take_the_place_of_an_ageing_job() -> None:
    limits = AssociationLimits(jobs={LimitKind.GRP_JOBS_ACCRUE: 1})
    made = accruing_world(QosLimits(name="normal", limits=limits))
    made.run_one(cpus=4, nodes=2, limit=24 * HOUR, qos="normal")
    first, second = (made.submit(cpus=4, nodes=2, qos="normal") for _ in range(2))
    made.settle()
    made.request(ev.HoldJob(named(first)))
    made.plan()
    assert (made.job(first).accrued, made.job(second).accrued) == (0, START.wall)


def test_array_loses_as_many_tasks_as_there_are_places() -> None:
    limits = AssociationLimits(jobs={LimitKind.GRP_JOBS_ACCRUE: 2})
    made = accruing_world(QosLimits(name="normal", limits=limits))
    made.run_one(cpus=4, nodes=2, limit=24 * HOUR, qos="normal")
    array = made.submit(cpus=4, nodes=2, qos="normal", array="1-4")
    made.settle()
    ageing = [job.request.task for job in made.core.state.jobs.values() if job.accrued]
    assert (sorted(ageing), made.job(array).tasks) == ([1, 2], (3, 4))
