"""Heterogeneous jobs: backfill starts all components together, or none."""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.scheduling.machines.nodes import LimitCheck, StartLimits
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, Scene


def starts(scene: Scene) -> set[int]:
    return {start.job.number for start in scene.both().plan.starts}


def reserved(scene: Scene) -> dict[int, int]:
    """Return the minutes from now to the reserved start of each job."""
    plan = scene.both().plan
    return {
        reservation.job.number: (reservation.at - NOW) // 60 for reservation in plan.reservations
    }


def half_busy() -> Scene:
    """One of two nodes is busy for 30 minutes. Job 2 has two components of one node each."""
    scene = Scene(rack(2)).runs(1, "n1", 30)
    return scene.waits(2, priority=9, het_job=2).waits(3, priority=9, het_job=2)


def test_components_start_together_when_all_fit() -> None:
    scene = Scene(rack(3)).waits(2, priority=9, het_job=2).waits(3, 2, priority=9, het_job=2)
    assert starts(scene) == {2, 3}


def test_main_pass_starts_no_component_and_no_job_behind_it() -> None:
    scene = Scene(rack(4)).waits(2, priority=9, het_job=2).waits(4)
    plan = scene.main(full=True).plan
    assert not plan.starts
    assert plan.reason(4) == "Priority"


def test_no_component_starts_before_the_last_can() -> None:
    assert starts(half_busy()) == set()
    assert reserved(half_busy()) == {2: 30, 3: 30}
    assert half_busy().both().plan.reason(2) == "Resources"


def test_job_that_ends_before_the_components_start_uses_their_nodes() -> None:
    assert starts(half_busy().waits(4, minutes=29)) == {4}
    assert starts(half_busy().waits(4, minutes=31)) == set()


def test_components_are_planned_on_nodes_of_their_own() -> None:
    """Both would fit on the one node, but slurmctld plans whole nodes for each."""
    scene = Scene(rack(1))
    for number in (2, 3):
        scene.waits(number, cpus_per_task=2, exclusive=False, priority=9, het_job=2)
    assert (starts(scene), reserved(scene)) == (set(), {})


def test_held_component_keeps_the_others_without_a_plan() -> None:
    scene = Scene(rack(2)).waits(2, priority=9, het_job=2)
    scene.waits(3, het_job=2, held="Dependency").waits(4, 2)
    assert starts(scene) == {4}


class OneNode(StartLimits):
    """Limit of one node for all jobs that start."""

    def __init__(self, used: int = 0) -> None:
        self.used = used

    def copy(self) -> OneNode:
        return OneNode(self.used)

    def checks(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> Iterator[LimitCheck]:
        yield LimitCheck("QOSGrpNodeLimit" if self.used else None, "one node")

    def record_start(self, job: PendingJob, where: Placement) -> None:
        self.used += 1


def test_limits_count_all_components() -> None:
    scene = Scene(rack(2)).waits(2, priority=9, het_job=2).waits(3, priority=9, het_job=2)
    scene.limits = OneNode()
    plan = scene.both().plan
    assert not plan.starts
    assert plan.reason(3) == "QOSGrpNodeLimit"
