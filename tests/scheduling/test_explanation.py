"""Explanation of a waiting job, with evidence."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.cluster.dependency import Dependencies, Dependency, DependencyState
from fairbank.cluster.node import Gpus, Node, NodeState
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import NotFound
from fairbank.core.time import iso
from fairbank.scheduling.explain.answer import Explanation
from fairbank.scheduling.explain.dependencies import JobStates, OpenDependencies
from fairbank.scheduling.explain.explanation import explain
from fairbank.scheduling.explain.funds import CreditCheckInput
from fairbank.scheduling.machines.node_rules import NoStartLimits
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.reason import NAMES, explain_reason
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, Scene


def told(scene: Scene, number: int) -> Explanation:
    return explain(scene.snapshot, scene.both().plan, number, NOW)


def said(found: Explanation) -> list[str]:
    return [f"{'+' if check.ok else '-'} {check.what}: {check.evidence}" for check in found.checks]


def in_minutes(minutes: int) -> str:
    return iso(NOW + minutes * 60)


def seed() -> Scene:
    scene = Scene(rack(8)).runs(1, "n[7-8]", 180)
    return (
        scene.waits(2, 8, minutes=600, priority=9).waits(3, 4, minutes=240).waits(4, 4, minutes=179)
    )


def test_the_head_of_the_queue_waits_for_nodes() -> None:
    found = told(seed(), 2)
    assert (
        found.headline
        == "Job 2 waits for 8 nodes: 2 of the 8 that would do are free now (Resources). Room is"
        f" kept for it at {in_minutes(180)}."
    )
    assert (found.code, found.position, found.ahead, found.expected) == (
        "Resources",
        1,
        (),
        NOW + 180 * 60,
    )
    assert said(found) == [
        f"+ nothing holds it back: it may start since {in_minutes(-60)}",
        "+ partition batch takes it: within its limits",
        "+ nodes of batch that would do: 8 of 8 would do, and it wants 8",
        (
            "- nodes of batch that are free: 2 are free now, and it wants 8; other jobs are there:"
            f" n[1-4,7-8]; the first job there ends by {in_minutes(179)}, the last by"
            f" {in_minutes(180)}"
        ),
        "+ limits in batch: none is reached",
        "+ its turn: nobody who wants its nodes is ahead",
    ]


def test_explanation_names_job_ahead_and_owner_of_reserved_nodes() -> None:
    found = told(seed(), 3)
    assert (
        found.headline
        == f"Job 3 waits behind job 2 (Priority). Room is kept for it at {in_minutes(780)}."
    )
    assert (found.code, found.position, found.ahead) == ("Priority", 2, (2,))
    assert said(found)[3:] == [
        (
            "- nodes of batch that are free: 0 are free now, and it wants 4; other jobs are there:"
            " n[1-4,7-8]; kept for job 2, which comes before: n[5-6]; the first job there ends by"
            f" {in_minutes(179)}, the last by {in_minutes(180)}"
        ),
        "+ limits in batch: none is reached",
        f"- its turn: ahead is job 2, for which room is kept at {in_minutes(180)}",
    ]


def test_each_node_is_reported_with_the_first_cause_against_it() -> None:
    fits: dict[str, Any] = {
        "cpus": 8,
        "memory": 8_000,
        "gpus": (Gpus("a100", 2),),
        "features": frozenset({"fast"}),
    }
    nodes = [
        Node(name="small", **{**fits, "cpus": 4}),
        Node(name="forgetful", **{**fits, "memory": 4_000}),
        Node(name="plain", **{**fits, "gpus": ()}),
        Node(name="slow", **{**fits, "features": frozenset()}),
        Node(name="sick", **{**fits, "state": NodeState.DRAINED}),
        Node(name="kept", **fits),
        Node(name="disliked", **fits),
        Node(name="busy", **fits),
    ]
    scene = Scene(nodes).runs(1, "busy", 60).reserves("class", "kept", 30, 90)
    scene.waits(
        2,
        cpus_per_task=8,
        exclusive=False,
        memory_per_node=8_000,
        gpus=(Gpus("a100", 1),),
        constraint="fast",
        excluded=("disliked",),
    )
    found = told(scene, 2)
    assert said(found)[2:4] == [
        (
            "+ nodes of batch that would do: 3 of 8 would do, and it wants 1; excluded by name:"
            " disliked; fewer than 8 CPUs: small; less than 8000 MiB of memory: forgetful; not"
            " these GPUs: 1 a100: plain; not as fast says: slow"
        ),
        (
            "- nodes of batch that are free: 0 are free now, and it wants 1; drained: sick;"
            " reserved for others: class: kept; too few CPUs are free: busy; the first job there"
            f" ends by {in_minutes(60)}, the last by {in_minutes(60)}"
        ),
    ]
    assert found.code == "Resources"


def test_job_that_can_never_start_is_reported() -> None:
    found = told(Scene(rack(2)).waits(1, cpus_per_task=64), 1)
    assert (
        found.headline
        == "Job 1 waits: No nodes of the cluster are as it asks, whoever else is there: it will"
        " never start as it is (BadConstraints)."
    )
    assert (
        said(found)[2]
        == "- nodes of batch that would do: 0 of 2 would do, and it wants 1; fewer than 64 CPUs:"
        " n[1-2]"
    )
    apart = [
        Node(name="a", cpus=4, memory=4_000),
        Node(name="b", cpus=4, memory=4_000, state=NodeState.DOWN),
        Node(name="c", cpus=4, memory=4_000),
    ]
    assert (
        said(told(Scene(apart).waits(1, 2, contiguous=True, excluded=("b",)), 1))[2]
        == "- nodes of batch that would do: 2 of 3 would do, and it wants 2; excluded by name: b;"
        " but not together, with all that it asks for"
    )


def test_maintenance_is_named() -> None:
    found = told(
        Scene(rack(2))
        .reserves("works", "n[1-2]", 120, 240, maintenance=True)
        .waits(1, minutes=180),
        1,
    )
    assert found.code == "ReqNodeNotAvail"
    assert "reserved for maintenance: works: n[1-2]" in said(found)[3]


@pytest.mark.parametrize(
    ("asked", "code", "evidence"),
    [
        (
            {"held": "JobHeldUser"},
            "JobHeldUser",
            "- nothing holds it back: Its owner holds it back; scontrol release lets it go.",
        ),
        (
            {"eligible": NOW + 60},
            "BeginTime",
            f"- nothing holds it back: it may start from {in_minutes(1)} on",
        ),
        (
            {"reservation": "class"},
            "Reservation",
            (
                f"- nothing holds it back: reservation class is from {in_minutes(10)} to"
                f" {in_minutes(20)}"
            ),
        ),
        (
            {"reservation": "gone"},
            "ReservationDeleted",
            "- nothing holds it back: there is no reservation gone",
        ),
        (
            {"partitions": ("removed",)},
            "PartitionConfig",
            f"- partition removed takes it: {explain_reason('PartitionConfig')}",
        ),
        (
            {"excluded": ("n9",)},
            "BadConstraints",
            f"- partition batch takes it: {explain_reason('BadConstraints')}",
        ),
        (
            {"minutes": 200},
            "PartitionTimeLimit",
            "- partition batch takes it: Its time limit is longer than its partition allows.",
        ),
    ],
)
def test_job_outside_the_queue_gets_its_reason(
    asked: dict[str, Any], code: str, evidence: str
) -> None:
    scene = Scene(rack(2), PartitionRules(name="batch", max_seconds=10_800)).reserves(
        "class", "n1", 10, 20
    )
    found = told(scene.waits(1, **asked), 1)
    assert (found.code, found.position, found.ahead) == (code, None, ())
    assert evidence in said(found)
    assert found.headline.startswith("Job 1 waits: ")


class Everybody(NoStartLimits):
    def holds(self, job: PendingJob, partition: str, where: Placement | None = None) -> str | None:
        return "AssocGrpCPUMinutesLimit"

    def copy(self) -> Everybody:
        return self


def test_a_limit_is_reported_with_its_sentence() -> None:
    scene = Scene(rack(1)).waits(1)
    scene.limits = Everybody()
    found = told(scene, 1)
    assert found.code == "AssocGrpCPUMinutesLimit"
    assert "CPU-minutes" in found.headline
    assert said(found)[4].startswith(
        "- limits in batch: AssocGrpCPUMinutesLimit: All jobs of the association"
    )


def test_a_job_that_does_not_wait_is_not_explained() -> None:
    with pytest.raises(NotFound, match="job 9 does not wait"):
        told(seed(), 9)
    with pytest.raises(NotFound, match="job 4 does not wait"):
        told(seed(), 4)


def with_conditions(**said: Any) -> Explanation:
    scene = seed()
    return explain(scene.snapshot, scene.both().plan, 3, NOW, **said)


def test_credit_is_checked_as_the_bank_tells_it() -> None:
    rich = with_conditions(
        funds=CreditCheckInput(
            project="chem_qmc", resource="cpu", wanted=384 * 60, available=59_408 * 60
        )
    )
    assert "+ funds: needs a hold of 384 SU, available 59,408 of chem_qmc/cpu" in said(rich)
    assert rich.headline == told(seed(), 3).headline
    poor = with_conditions(
        funds=CreditCheckInput(
            project="chem_qmc", resource="gpu", wanted=384 * 60, available=262 * 60
        )
    )
    assert "- funds: needs a hold of 384 SU, available 262 of chem_qmc/gpu: short by 122" in said(
        poor
    )
    assert (
        poor.headline
        == f"{rich.headline} The bank would not let it start: it needs a hold of 384 SU, available"
        " 262 of chem_qmc/gpu: short by 122."
    )
    observed = with_conditions(
        funds=CreditCheckInput(
            project="chem_qmc", resource="gpu", wanted=384 * 60, available=262 * 60, observed=True
        )
    )
    assert (
        "+ funds: needs a hold of 384 SU, available 262 of chem_qmc/gpu: short by 122, and let"
        " through" in said(observed)
    )
    assert observed.headline == rich.headline


def depending(
    *on: Dependency, any_of: bool = False, seen: dict[int | None, JobStates] | None = None
) -> str:
    dependencies = Dependencies("as Slurm has it", on, any_of)
    return said(
        with_conditions(
            awaiting=OpenDependencies(
                dependencies, tuple((seen or {}).get(each.job, JobStates()) for each in on)
            )
        )
    )[1]


DONE, NOT_YET = (
    Dependency(kind="afterok", job=7, state=DependencyState.YES),
    Dependency(kind="afterany", job=8),
)
NEVER = Dependency(kind="afternotok", job=9, state=DependencyState.NEVER)
RUNS = JobStates(running=("8",), began=NOW - 600, ends=NOW + 1_200)


def test_every_dependency_is_reported_with_how_far_it_has_come_and_what_the_job_does() -> None:
    assert (
        depending(DONE, NOT_YET, seen={8: RUNS})
        == "- dependencies: job 7 has ended well: done; job 8 has ended: not yet, it runs until"
        f" {in_minutes(20)} at the latest"
    )
    assert (
        depending(DONE, NOT_YET, any_of=True)
        == "+ dependencies: one of these is enough: job 7 has ended well: done; job 8 has ended:"
        " not yet, it is not in the queue any more"
    )
    assert depending(NOT_YET, NEVER, seen={9: JobStates(ended=("COMPLETED",))}).endswith(
        "job 9 has ended, and not well: can never be any more, it ended as COMPLETED; so it will"
        " never start as it is: cancel it, or let it depend on something else (scontrol update)"
    )
    assert "never start" not in depending(NOT_YET, NEVER, any_of=True)
    assert (
        said(with_conditions(awaiting=OpenDependencies(Dependencies())))[1]
        == "+ dependencies: none is open"
    )
    assert (
        said(with_conditions(awaiting=OpenDependencies(Dependencies("on:tuesdays"))))[1]
        == "- dependencies: they cannot be read here, and are told as they stand: on:tuesdays"
    )


@pytest.mark.parametrize(
    ("on", "seen", "told"),
    [
        (
            Dependency(kind="singleton"),
            JobStates(),
            "no other job of this name and user runs, or waits before it: not yet",
        ),
        (
            Dependency(kind="singleton"),
            JobStates(running=("4",), waiting=("5", "6"), reason="Priority"),
            (
                "no other job of this name and user runs, or waits before it: not yet, job 4 runs"
                " without a time limit, job 5 and 1 more wait (Priority)"
            ),
        ),
        (
            Dependency(kind="afterok", job=7, all_tasks=True),
            JobStates(
                running=("7_1", "7_2"),
                ends=NOW,
                waiting=("7_3",),
                reason="Resources",
                ended=("FAILED", "COMPLETED", "COMPLETED"),
            ),
            (
                "every task of array 7 has ended well: not yet, job 7_1 and 1 more run until"
                f" {in_minutes(0)} at the latest, job 7_3 waits (Resources), 2 ended as COMPLETED,"
                " 1 ended as FAILED"
            ),
        ),
        (
            Dependency(kind="afternotok", job=7, all_tasks=True),
            JobStates(),
            (
                "every task of array 7 has ended, and not all of them well: not yet, none of its"
                " tasks is in the queue any more"
            ),
        ),
        (
            Dependency(kind="after", job=7, task=3),
            RUNS,
            f"job 7_3 has begun, or was cancelled: not yet, it runs until {in_minutes(20)}",
        ),
        (
            Dependency(kind="after", job=8, minutes=30),
            RUNS,
            f"30 minutes have passed since job 8 began: not yet, that is at {in_minutes(20)}",
        ),
        (
            Dependency(kind="after", job=8, minutes=1),
            JobStates(waiting=("8",), reason="Priority"),
            "1 minute has passed since job 8 began: not yet, it waits (Priority)",
        ),
        (Dependency(kind="someday", job=7), JobStates(), "someday job 7: not yet"),
    ],
)
def test_a_dependency_is_reported_by_its_kind(on: Dependency, seen: JobStates, told: str) -> None:
    assert depending(on, seen={on.job: seen}).startswith(f"- dependencies: {told}")


@pytest.mark.parametrize(
    ("held", "on", "any_of", "headline"),
    [
        ("Dependency", [NOT_YET], False, "Job 1 waits until job 8 has ended (Dependency)."),
        ("Dependency", [DONE, NOT_YET], False, "Job 1 waits until job 8 has ended (Dependency)."),
        (
            "Dependency",
            [NEVER, NOT_YET],
            True,
            (
                "Job 1 waits for one of 2 dependencies, first of them that job 9 has ended, and not"
                " well"
            ),
        ),
        (
            "DependencyNeverSatisfied",
            [NOT_YET, NEVER],
            False,
            (
                "Job 1 waits for what can never be any more, that job 9 has ended, and not well"
                " (DependencyNeverSatisfied)."
            ),
        ),
        (
            "JobHeldUser",
            [NOT_YET],
            False,
            "Job 1 waits: Its owner holds it back; scontrol release lets it go (JobHeldUser).",
        ),
    ],
)
def test_the_reason_names_the_job_that_is_waited_for(
    held: str, on: list[Dependency], any_of: bool, headline: str
) -> None:
    scene = Scene(rack(1)).waits(1, held=held)
    awaiting = OpenDependencies(
        Dependencies("as Slurm has it", tuple(on), any_of), tuple(JobStates() for _ in on)
    )
    assert explain(
        scene.snapshot, scene.both().plan, 1, NOW, awaiting=awaiting
    ).headline.startswith(headline)


def test_job_outside_the_queue_gets_its_node_report() -> None:
    found = told(
        Scene(rack(4)).runs(1, "n1", 30).waits(2, 2, held="JobHeldUser", excluded=("n4",)), 2
    )
    assert said(found) == [
        f"- nothing holds it back: {explain_reason('JobHeldUser')}",
        "+ partition batch takes it: within its limits",
        "+ nodes of batch that would do: 3 of 4 would do, and it wants 2; excluded by name: n4",
        (
            "+ nodes of batch that are free: 2 are free now, and it wants 2; other jobs are there:"
            f" n1; the first job there ends by {in_minutes(30)}, the last by {in_minutes(30)}"
        ),
        "+ limits in batch: none is reached",
        "- its turn: it has no place in the queue as long as something holds it back",
    ]


def test_nodes_of_a_partition_that_does_not_take_the_job_are_reported() -> None:
    found = said(
        told(
            Scene(rack(2), PartitionRules(name="batch", max_seconds=600)).waits(1, 3, minutes=60), 1
        )
    )
    assert found[2].startswith("- nodes of batch that would do: 2 of 2 would do, and it wants 3")
    assert found[-1] == "- its turn: it has no place in the queue as long as no partition takes it"


@pytest.mark.parametrize(
    "asked", [{"partitions": ("removed",)}, {"excluded": ("n9",)}, {"constraint": "a&&b"}]
)
def test_where_there_is_no_partition_or_no_request_there_are_no_nodes_to_tell(
    asked: dict[str, Any],
) -> None:
    found = said(told(Scene(rack(2)).waits(1, **asked), 1))
    assert not [each for each in found if each[2:].startswith("nodes of ")]
    assert found[-1] == "- its turn: it has no place in the queue as long as no partition takes it"


def test_a_reservation_that_has_gone_leaves_all_nodes_to_look_at() -> None:
    found = said(told(Scene(rack(2)).waits(1, reservation="gone"), 1))
    assert found[0] == "- nothing holds it back: there is no reservation gone"
    assert found[3] == "+ nodes of batch that are free: 2 are free now, and it wants 1"


@pytest.mark.parametrize("reason", sorted(set(NAMES.values())))
def test_a_job_that_is_held_for_any_reason_of_slurms_gets_its_sentence(reason: str) -> None:
    found = told(Scene(rack(1)).waits(1, held=reason), 1)
    assert found.code == reason
    assert found.headline == f"Job 1 waits: {explain_reason(reason).removesuffix('.')} ({reason})."
    assert said(found)[0] == f"- nothing holds it back: {explain_reason(reason)}"
    assert (found.position, found.expected) == (None, None)
