"""Suggestions of fewer CPUs, GPUs or nodes and of another QOS. Each one is applied as its option
says: the job then starts at the promised time, and neither policy nor bank refuses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairbank.cluster.node import Gpus
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.time import parse_duration
from fairbank.scheduling.explain.answer import EarlierStart, EarlierStartAdvice
from fairbank.scheduling.explain.job_changes import (
    FEWER_CPUS,
    FEWER_GPUS,
    FEWER_NODES,
    AllowedChanges,
    suggest_earlier_start,
    with_request,
)
from fairbank.scheduling.machines.node_snapshot import replace_job
from fairbank.scheduling.machines.nodes import LimitCheck, StartLimits
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, Scene

SHARED: dict[str, Any] = {"exclusive": False, "memory_per_node": 1}


class Site(AllowedChanges):
    """Site with QOS, of which each may have a limit; the policy refuses partitions, the bank jobs
    that cost more CPU-minutes than the credit.
    """

    def __init__(
        self,
        *,
        qos: tuple[str, ...] = (),
        credit: int | None = None,
        refused: frozenset[str] = frozenset(),
    ) -> None:
        self.qos, self.credit, self.refused = qos, credit, refused

    def partitions(self, job: PendingJob, name: str) -> tuple[str, ...] | None:
        return None if name in self.refused else super().partitions(job, name)

    def with_other_qos(self, job: PendingJob) -> Iterator[PendingJob]:
        for name in self.qos:
            if name != job.qos:
                yield replace(job, qos=name)

    def is_accepted(self, job: PendingJob) -> bool:
        return self.credit is None or job.wanted.cpus * (job.limit or 0) // 60 <= self.credit


class CpuLimits(StartLimits):
    """Most CPUs of the running jobs of each QOS together, by the requested TRES, and least CPUs of
    a job.
    """

    def __init__(
        self, most: dict[str, int], used: Counter[str] | None = None, *, least: int = 0
    ) -> None:
        self.most, self.used, self.least = most, Counter(used or {}), least

    def copy(self) -> CpuLimits:
        return CpuLimits(self.most, self.used, least=self.least)

    def checks(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> Iterator[LimitCheck]:
        most = self.most.get(job.qos)
        too_many = most is not None and self.used[job.qos] + job.tres["cpu"] > most
        yield LimitCheck("QOSGrpCpuLimit" if too_many else None, f"at most {most} CPUs")
        too_few = job.tres["cpu"] < self.least
        reason = "QOSMinCpuNotSatisfied" if too_few else None
        yield LimitCheck(reason, f"at least {self.least} CPUs")

    def record_start(self, job: PendingJob, where: Placement) -> None:
        self.used[job.qos] += job.tres["cpu"]


def advised(scene: Scene, number: int, site: AllowedChanges | None = None) -> EarlierStartAdvice:
    return suggest_earlier_start(
        scene.snapshot, SchedulerParameters(), scene.both().plan, number, NOW, site
    )


def suggested(scene: Scene, number: int, site: AllowedChanges | None = None) -> EarlierStart | None:
    return advised(scene, number, site).suggestion


# --- one change each ---


def busy_rack(**fields: Any) -> Scene:
    """Return a machine of two nodes with 4 CPUs and 4 GPUs: one is busy, of the other a CPU and a
    GPU are free for an hour.
    """
    nodes = rack(2, gpus=(Gpus("a", 4),))
    scene = Scene(nodes).runs(1, "n1", 60, **fields)
    return scene.runs(
        2, "n2", 60, cpus_per_task=3, gpus=(Gpus("a", 3),), tasks=1, **{**SHARED, **fields}
    )


def test_fewer_cpus_of_a_task() -> None:
    scene = busy_rack().waits(3, cpus_per_task=3, **SHARED)
    assert suggested(scene, 3) == EarlierStart("-c 1", NOW)


def test_fewer_tasks() -> None:
    scene = busy_rack().waits(3, tasks=5, **SHARED)
    assert suggested(scene, 3) == EarlierStart("-n 1", NOW)
    per_node = busy_rack().waits(3, tasks=4, tasks_per_node=4, cpus_per_node=4, **SHARED)
    assert suggested(per_node, 3) == EarlierStart("-n 1 --ntasks-per-node=1", NOW)


def test_most_cpus_with_which_it_starts_as_early() -> None:
    scene = Scene(rack(1, cpus=64)).runs(1, "n1", 60, tasks=24, **SHARED)
    assert suggested(scene.waits(2, cpus_per_task=64, **SHARED), 2) == EarlierStart("-c 40", NOW)


def test_fewer_gpus() -> None:
    scene = busy_rack().waits(3, gpus=(Gpus("a", 2),), **SHARED)
    assert suggested(scene, 3) == EarlierStart("--gpus-per-node=a:1", NOW)
    untyped = busy_rack().waits(3, gpus=(Gpus("", 3),), **SHARED)
    assert suggested(untyped, 3) == EarlierStart("--gpus-per-node=1", NOW)


def test_fewer_nodes_keep_the_tasks_of_each() -> None:
    scene = Scene(rack(4)).runs(1, "n[1-2]", 60)
    result = suggested(scene.waits(2, 4, tasks=8, **SHARED), 2)
    assert result == EarlierStart("-N 2 -n 4", NOW)


def test_fewer_nodes_are_not_below_those_that_the_partition_needs() -> None:
    scene = Scene(rack(4), PartitionRules(name="batch", min_nodes=2)).runs(1, "n[2-4]", 60)
    assert suggested(scene.waits(2, 3, **SHARED), 2) is None


def test_exclusive_job_is_not_advised_to_take_fewer_cpus() -> None:
    scene = Scene(rack(1)).runs(1, "n1", 60)
    assert FEWER_CPUS not in advised(scene.waits(2, tasks=4), 2).tried


def test_smallest_sacrifice_wins_among_equal_starts() -> None:
    """A shorter limit, fewer CPUs and fewer nodes all start it at once."""
    scene = Scene(rack(2)).runs(1, "n1", 60).waits(2, 2, minutes=600, priority=9)
    scene.waits(3, minutes=120, cpus_per_task=4, **SHARED)
    assert suggested(scene, 3) == EarlierStart("-t 00:59:00", NOW)


def limited(scene: Scene, **most: int) -> Scene:
    scene.limits = CpuLimits(most)
    return scene


def test_job_that_a_limit_holds_may_take_fewer_cpus() -> None:
    scene = Scene(rack(1, cpus=64)).waits(
        1, cpus_per_task=48, qos="normal", tres={"cpu": 48, "node": 1}, **SHARED
    )
    advice = advised(limited(scene, normal=20), 1)
    assert advice.suggestion == EarlierStart("-c 20", NOW)


def test_fewer_cpus_are_not_below_those_that_the_qos_needs() -> None:
    scene = Scene(rack(1, cpus=64)).waits(
        1, cpus_per_task=48, qos="normal", tres={"cpu": 48, "node": 1}, **SHARED
    )
    scene.limits = CpuLimits({"normal": 20}, least=4)
    assert suggested(scene, 1) == EarlierStart("-c 20", NOW)
    scene.limits = CpuLimits({"normal": 20}, least=21)
    assert suggested(scene, 1) is None


def test_job_that_a_limit_holds_may_take_another_qos() -> None:
    scene = limited(
        Scene(rack(1)).waits(1, qos="low", cpus_per_task=4, tres={"cpu": 4}, **SHARED), low=3
    )
    assert suggested(scene, 1, Site(qos=("low", "my qos"))) == EarlierStart("-q 'my qos'", NOW)
    assert suggested(scene, 1, Site(qos=("low",))) == EarlierStart("-c 3", NOW)


def test_names_are_quoted_for_the_shell() -> None:
    rules = [PartitionRules(name=name, nodes=(f"n{n}",)) for n, name in ((1, "a"), (2, "$b c"))]
    scene = Scene(rack(2), *rules).runs(1, "n1", 60, partition="a").waits(2, partitions=("a",))
    assert suggested(scene, 2) == EarlierStart("-p 'a,$b c'", NOW)


# --- what the bank refuses ---


def test_change_that_the_bank_refuses_is_not_suggested() -> None:
    scene = busy_rack().waits(3, minutes=100, cpus_per_task=3, **SHARED)
    assert suggested(scene, 3, Site(credit=100)) == EarlierStart("-c 1", NOW)
    assert suggested(scene, 3, Site(credit=99)) is None


def test_limit_is_the_longest_that_the_bank_accepts() -> None:
    scene = Scene(rack(1)).waits(1, minutes=600, **SHARED).reserves("later", "n1", 300, 900)
    assert suggested(scene, 1) == EarlierStart("-t 04:59:00", NOW)
    assert suggested(scene, 1, Site(credit=120)) == EarlierStart("-t 02:00:00", NOW)


# --- TRES of a changed request ---


@pytest.mark.parametrize(
    ("changes", "tres"),
    [
        ({"cpus_per_task": 2}, {"cpu": 8, "mem": 8_000, "gres/gpu": 4, "gres/gpu:a": 4}),
        (
            {"nodes": 1, "tasks": 2},
            {"cpu": 8, "mem": 8_000, "node": 1, "gres/gpu": 2, "gres/gpu:a": 2, "gres/tmp": 100},
        ),
        ({"gpus": (Gpus("a", 1),)}, {"gres/gpu": 2, "gres/gpu:a": 2}),
        ({"memory_per_node": 500}, {"mem": 1_000}),
        ({"exclusive": True}, {}),
    ],
)
def test_tres_follow_the_request(changes: dict[str, Any], tres: dict[str, int]) -> None:
    before = {
        "cpu": 16,
        "mem": 16_000,
        "node": 2,
        "gres/gpu": 4,
        "gres/gpu:a": 4,
        "gres/tmp": 200,
        "license/x": 1,
    }
    wanted = ResourceRequest(nodes=2, tasks=4, cpus_per_task=4, gpus=(Gpus("a", 2),))
    job = PendingJob(number=1, wanted=wanted, tres=before)
    assert with_request(job, **changes).tres == {**before, **tres}


def test_memory_follows_that_of_each_cpu() -> None:
    wanted = ResourceRequest(tasks=4, memory_per_cpu=1_000)
    job = PendingJob(number=1, wanted=wanted, tres={"cpu": 4, "mem": 4_000})
    assert with_request(job, memory_per_cpu=500).tres == {"cpu": 4, "mem": 2_000}


# --- property ---


def applied(job: PendingJob, option: str) -> PendingJob:
    """Return the job with an option of sbatch, read as Slurm reads it."""
    name, _, value = option.partition("=") if option.startswith("--") else option.partition(" ")
    wanted = job.wanted
    if name == "-t":
        return replace(job, limit=parse_duration(value, field="-t"))
    if name == "-p":
        return replace(job, partitions=tuple(value.split(",")))
    if name == "-q":
        return replace(job, qos=value)
    if name == "-N":
        nodes, _, tasks = value.split()
        changes: dict[str, Any] = {
            "nodes": int(nodes),
            "max_nodes": int(nodes),
            "tasks": int(tasks),
        }
    elif name == "-n" and "--ntasks-per-node=" in value:
        tasks, _, by_node = value.partition(" --ntasks-per-node=")
        # sbatch takes as many nodes as the tasks need.
        changes = {
            "nodes": max(min(wanted.nodes, int(tasks)), -(-int(tasks) // int(by_node))),
            "tasks": int(tasks),
            "tasks_per_node": int(by_node),
            "cpus_per_node": int(by_node) * wanted.cpus_per_task,
        }
    elif name == "-n":
        changes = {"tasks": int(value)}
    elif name == "-c":
        by_task = int(value)
        cpus = by_task * (wanted.tasks_per_node or 1)
        changes = {"cpus_per_task": by_task, "cpus_per_node": cpus}
    elif name == "--gpus-per-node":
        changes = {"gpus": (Gpus(wanted.gpus[0].type, int(value.rpartition(":")[2])),)}
    elif name == "--mem":
        changes = {"memory_per_node": int(value.removesuffix("M"))}
    else:
        assert option == "--exclusive"  # the only one that is left out
        changes = {"exclusive": False}
    new = replace(wanted, **changes)
    return replace(job, wanted=new, tres={"cpu": new.cpus, "node": new.nodes})


SHARES: tuple[dict[str, Any], ...] = (
    {},
    {**SHARED, "cpus_per_task": 3},
    {**SHARED, "gpus": (Gpus("a", 1),)},
)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Scene, Site]:
    """Draw a small machine with running and waiting jobs of two QOS, and the rules of its site."""
    nodes = rack(draw(st.integers(2, 4)), gpus=(Gpus("a", 2),))
    names = ("left", "right")
    middle = len(nodes) // 2
    scene = Scene(
        nodes,
        PartitionRules(name="left", nodes=tuple(node.name for node in nodes[:middle])),
        PartitionRules(name="right", nodes=tuple(node.name for node in nodes[middle:])),
    )
    scene.limits = CpuLimits(
        draw(st.dictionaries(st.sampled_from(["a", "b"]), st.integers(1, 8))),
        least=draw(st.sampled_from([0, 2, 3])),
    )
    for number, node in enumerate(nodes, 1):
        if draw(st.booleans()):
            share = draw(st.sampled_from(SHARES))
            minutes = draw(st.integers(1, 200))
            scene.runs(number, node.name, minutes, partition=names[number > middle], **share)
    if draw(st.booleans()):  # a job ahead, so that a shorter limit may help
        scene.waits(10, 2, minutes=300, priority=9, partitions=(draw(st.sampled_from(names)),))
        scene.pending[0] = replace(scene.pending[0], tres={"cpu": 0})
    for number in range(11, 11 + draw(st.integers(1, 3))):
        wanted = ResourceRequest(
            nodes=draw(st.integers(1, 2)),
            tasks=draw(st.sampled_from([None, 2, 4])),
            tasks_per_node=(by_node := draw(st.sampled_from([None, None, 4]))),
            cpus_per_task=(cpus := draw(st.integers(1, 4))),
            cpus_per_node=cpus * (by_node or 1),
            gpus=draw(st.sampled_from([(), (Gpus("a", 1),), (Gpus("a", 2),)])),
            exclusive=draw(st.sampled_from([False, False, True])),
            memory_per_node=1,
        )
        scene.pending.append(
            PendingJob(
                number=number,
                partitions=(draw(st.sampled_from(names)),),
                qos=draw(st.sampled_from(["a", "b"])),
                limit=draw(st.integers(1, 300)) * 60,
                priority=draw(st.integers(1, 3)),
                wanted=wanted,
                tres={"cpu": wanted.cpus, "node": wanted.nodes},
            )
        )
    site = Site(
        qos=draw(st.sampled_from([(), ("a", "b")])),
        credit=draw(st.one_of(st.none(), st.integers(1, 600))),
        refused=draw(st.sampled_from([frozenset(), frozenset({"right"})])),
    )
    return scene, site


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenes())
def test_suggestion_holds_when_it_is_applied(drawn: tuple[Scene, Site]) -> None:
    scene, site = drawn
    plan = scene.both().plan
    started = {start.job.number for start in plan.starts}
    waiting = [job for job in scene.pending if job.number not in started]
    assume(waiting)
    for job in waiting:
        result = suggested(scene, job.number, site)
        if result is None:
            continue
        changed = applied(job, result.option)
        assert site.is_accepted(changed), "the bank refuses it"
        assert not site.refused & set(changed.partitions) - set(job.partitions), "the policy"
        assert changed.qos == job.qos or changed.qos in site.qos
        assert start_of(scene, changed) == result.at
        before = {reservation.job.number: reservation.at for reservation in plan.reservations}
        assert job.number not in before or result.at < before[job.number]


def start_of(scene: Scene, changed: PendingJob) -> int | None:
    after = run_passes(replace_job(scene.snapshot, changed), SchedulerParameters(), NOW)
    starts = {start.job.number: NOW for start in after.starts} | {
        reservation.job.number: reservation.at for reservation in after.reservations
    }
    return starts.get(changed.number)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenes())
def test_no_number_of_cpus_starts_a_job_earlier_than_the_suggestion(
    drawn: tuple[Scene, Site],
) -> None:
    scene, site = drawn
    for job in scene.pending:
        if job.wanted.cpus_per_task == 1 or job.wanted.exclusive:
            continue
        result = suggested(scene, job.number, site)
        earliest = start_of(scene, job) if result is None else result.at
        for cpus in range(1, job.wanted.cpus_per_task):
            changed = applied(job, f"-c {cpus}")
            start = start_of(scene, changed) if site.is_accepted(changed) else None
            assert start is None or (earliest is not None and earliest <= start), cpus


def test_every_search_has_a_name() -> None:
    scene = Scene(rack(2, gpus=(Gpus("a", 4),))).runs(1, "n[1-2]", 60)
    scene.waits(2, 2, cpus_per_task=2, gpus=(Gpus("a", 2),), **SHARED)
    assert advised(scene, 2).tried[-3:] == (FEWER_CPUS, FEWER_GPUS, FEWER_NODES)
