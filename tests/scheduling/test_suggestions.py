"""Suggestions that start a job sooner, each verified by a plan."""

from __future__ import annotations

from fairbank.bank.rules.short_term import ShortTerm
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.scheduling.explain.answer import EarlierStart, EarlierStartAdvice
from fairbank.scheduling.explain.job_changes import AllowedChanges, suggest_earlier_start
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.slurm.explain.admission_rules import AdmissionRules
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, Scene


def suggested(scene: Scene, number: int) -> EarlierStart | None:
    return suggest_earlier_start(
        scene.snapshot, SchedulerParameters(), scene.both().plan, number, NOW
    ).suggestion


def test_limit_that_fits_the_gap_before_a_large_job() -> None:
    scene = Scene(rack(8)).runs(1, "n[7-8]", 180).waits(2, 8, minutes=600, priority=9)
    assert suggested(scene.waits(3, 4, minutes=240), 3) == EarlierStart("-t 02:59:00", NOW)


def test_job_whose_partition_was_removed_may_go_to_one_that_is_there() -> None:
    assert suggested(Scene(rack(1)).waits(1, partitions=("removed",)), 1) == EarlierStart(
        "-p removed,batch", NOW
    )
    assert suggested(Scene(rack(1)).waits(1, constraint="a&&"), 1) is None


def test_another_partition_where_nodes_are_free() -> None:
    left, right = (
        PartitionRules(name="left", nodes=("n1",)),
        PartitionRules(name="right", nodes=("n2",)),
    )
    scene = Scene(rack(2), left, right).runs(1, "n1", 60, partition="left")
    assert suggested(scene.waits(2, partitions=("left",)), 2) == EarlierStart("-p left,right", NOW)


class PolicyChanges(AllowedChanges):
    """Changes of a job of chem that a policy admits."""

    def __init__(self, policy: AdmissionRules) -> None:
        self._policy = policy

    def partitions(self, job: PendingJob, name: str) -> tuple[str, ...] | None:
        return self._policy.with_candidate("chem", job.partitions, name)


def test_partition_that_the_site_refuses_is_not_suggested() -> None:
    names = ("left", "right", "closed")
    rules = [PartitionRules(name=name, nodes=(f"n{i}",)) for i, name in enumerate(names, 1)]
    scene = (
        Scene(rack(3), *rules).runs(1, "n1", 60, partition="left").waits(2, partitions=("left",))
    )

    def suggested_by(policy: AdmissionRules) -> EarlierStart | None:
        return suggest_earlier_start(
            scene.snapshot, SchedulerParameters(), scene.both().plan, 2, NOW, PolicyChanges(policy)
        ).suggestion

    listed = frozenset({"left", "right"})
    several = AdmissionRules(listed_partitions=listed, one_partition=False)
    assert suggested_by(several) == EarlierStart("-p left,right", NOW)
    single = AdmissionRules(listed_partitions=listed, one_partition=True)
    assert suggested_by(single) == EarlierStart("-p right", NOW)
    one = AdmissionRules(
        listed_partitions=listed,
        one_partition=True,
        short_terms=[ShortTerm("bio", "right", None, 0, 1)],
    )
    assert suggested_by(one) is None  # those of bio only
    course = AdmissionRules(
        listed_partitions=listed,
        one_partition=True,
        short_terms=[ShortTerm("chem", "left", None, 0, 1)],
    )
    assert suggested_by(course) is None


def test_suggestion_names_the_memory_needed_not_all_memory() -> None:
    scene = Scene(rack(1)).runs(1, "n1", 60, exclusive=False, memory_per_node=100)
    assert suggested(scene.waits(2, exclusive=False), 2) == EarlierStart("--mem=1000M", NOW)
    scene = Scene(rack(1)).runs(1, "n1", 60, exclusive=False, memory_per_node=1_000)
    assert suggested(scene.waits(2, exclusive=False, memory_per_node=4_000), 2) == EarlierStart(
        "--mem=2000M", NOW
    )


def test_less_memory_of_each_cpu() -> None:
    scene = Scene(rack(1)).runs(1, "n1", 60, exclusive=False, memory_per_node=1_000)
    scene.waits(2, tasks=2, exclusive=False, memory_per_cpu=2_000)
    assert suggested(scene, 2) == EarlierStart("--mem-per-cpu=1000M", NOW)


def test_zero_memory_is_never_suggested() -> None:
    scene = Scene(rack(1, memory=2), PartitionRules(name="batch", memory_per_node=100))
    assert suggested(scene.waits(2, exclusive=False), 2) is None
    scene = Scene(rack(1, memory=2)).runs(1, "n1", 60, exclusive=False, memory_per_node=2)
    assert suggested(scene.waits(2, exclusive=False, memory_per_node=1), 2) is None


def test_node_that_is_shared() -> None:
    scene = Scene(rack(1)).runs(1, "n1", 60, exclusive=False, memory_per_node=1_000)
    assert suggested(scene.waits(2, memory_per_node=1_000), 2) == EarlierStart(
        "--exclusive", NOW, leaves_out=True
    )


def test_later_begin_may_start_the_job_sooner() -> None:
    left, right = (
        PartitionRules(name="left", nodes=("n1",)),
        PartitionRules(name="right", nodes=("n2",)),
    )
    scene = (
        Scene(rack(2), left, right)
        .runs(1, "n1", 120, partition="left")
        .runs(2, "n2", 60, partition="right")
    )
    assert suggested(scene.waits(3, partitions=("left",)), 3) == EarlierStart(
        "-p left,right", NOW + 3_600
    )


OFTEN = ("--mem=1000M", "without --exclusive", "a shorter -t")


def test_tried_changes_are_listed_if_none_helps() -> None:
    def advised(scene: Scene, number: int) -> EarlierStartAdvice:
        return suggest_earlier_start(
            scene.snapshot, SchedulerParameters(), scene.both().plan, number, NOW
        )

    left, right = (
        PartitionRules(name="left", nodes=("n1",)),
        PartitionRules(name="right", nodes=("n2",)),
    )
    scene = (
        Scene(rack(2), left, right)
        .runs(1, "n1", 60, partition="left")
        .runs(2, "n2", 60, partition="right")
    )
    assert advised(scene.waits(3, partitions=("left",)), 3) == EarlierStartAdvice(
        None, ("-p left,right", *OFTEN)
    )
    assert advised(Scene(rack(1)).waits(1, held="JobHeldUser"), 1) == EarlierStartAdvice(None, ())


def test_limit_that_fits_a_later_gap() -> None:
    """Two nodes are free in an hour, all four in three hours, when the large job takes them."""
    scene = (
        Scene(rack(4))
        .runs(1, "n[1-2]", 60)
        .runs(2, "n[3-4]", 180)
        .waits(3, 4, minutes=600, priority=9)
    )
    assert suggested(scene.waits(4, 2, minutes=240), 4) == EarlierStart("-t 01:59:00", NOW + 3_600)


def test_backfill_delays_no_job_ahead() -> None:
    scene = (
        Scene(rack(2)).runs(1, "n1", 60).waits(2, 2, minutes=60, priority=9).waits(3, 1, minutes=90)
    )
    result = suggested(scene, 3)
    assert result == EarlierStart("-t 00:59:00", NOW)
    scene.pending[-1] = type(scene.pending[-1])(
        number=3, wanted=scene.pending[-1].wanted, limit=59 * 60
    )
    output = scene.both()
    assert output.starts == {3: "n2"}
    assert output.planned == {2: (60, "n[1-2]")}


def test_change_that_misses_the_deadline_is_not_suggested() -> None:
    def suggested_with(deadline: int) -> EarlierStart | None:
        scene = Scene(rack(2)).runs(1, "n1", 60).runs(2, "n2", 600).waits(3, 2, priority=9)
        return suggested(scene.waits(4, minutes=600, deadline=NOW + 60 * deadline), 4)

    assert suggested_with(2_000) == EarlierStart("-t 08:59:00", NOW + 3_600)
    assert suggested_with(300) == EarlierStart("-t 04:00:00", NOW + 3_600)
    assert suggested_with(60) is None
