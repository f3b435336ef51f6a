"""Explanation of a waiting job, with evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from fairbank.cluster.dependency import Dependencies, Dependency, DependencyState
from fairbank.cluster.node import Gpus, Node, NodeState
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import NotFound
from fairbank.core.time import iso
from fairbank.scheduling.explain.answer import BankRefusal, Explanation
from fairbank.scheduling.explain.checks import JobCredit
from fairbank.scheduling.explain.dependencies import JobStates, OpenDependencies
from fairbank.scheduling.explain.explanation import JobFacts, explain_on_nodes
from fairbank.scheduling.explain.run_times import RunTimeHistory
from fairbank.scheduling.explain.start_range import SimulatedRuns
from fairbank.scheduling.machines.nodes import LimitCheck, StartLimits
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.reason import NAMES, explain_reason
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, Scene


def explain(
    scene: Scene, number: int, *, history: RunTimeHistory[str] | None = None, **facts: Any
) -> Explanation:
    return explain_on_nodes(
        scene.snapshot,
        SchedulerParameters(),
        number,
        NOW,
        plan=scene.both().plan,
        facts=JobFacts(**facts),
        runs=None if history is None else SimulatedRuns(history),
        allowed=None,
    )


def check_lines(answer: Explanation) -> list[str]:
    return [f"{'+' if check.ok else '-'} {check.what}: {check.evidence}" for check in answer.checks]


def in_minutes(minutes: int) -> str:
    return iso(NOW + minutes * 60)


def seed() -> Scene:
    scene = Scene(rack(8)).runs(1, "n[7-8]", 180)
    return (
        scene.waits(2, 8, minutes=600, priority=9).waits(3, 4, minutes=240).waits(4, 4, minutes=179)
    )


def test_head_of_the_queue_waits_for_nodes() -> None:
    result = explain(seed(), 2)
    assert (
        result.headline
        == "Job 2 waits for 8 nodes: 2 of the 8 suitable nodes are free now (Resources). Reserved"
        f" start: {in_minutes(180)}."
    )
    assert (result.code, result.position, result.ahead, result.expected) == (
        "Resources",
        1,
        (),
        NOW + 180 * 60,
    )
    assert check_lines(result) == [
        f"+ eligible: since {in_minutes(-60)}",
        "+ partition batch accepts it: within its limits",
        "+ suitable nodes in batch: 8 of 8 are suitable, and it needs 8",
        (
            "- free nodes in batch: 2 are free now, and it needs 8; other jobs run there:"
            f" n[1-4,7-8]; the first job there ends by {in_minutes(179)}, the last by"
            f" {in_minutes(180)}"
        ),
        "+ limits in batch: none is reached",
        "+ no job ahead: no other job wants its nodes first",
    ]


def test_explanation_names_job_ahead_and_owner_of_reserved_nodes() -> None:
    result = explain(seed(), 3)
    assert (
        result.headline
        == f"Job 3 waits behind job 2 (Priority). Reserved start: {in_minutes(780)}."
    )
    assert (result.code, result.position, result.ahead) == ("Priority", 2, (2,))
    assert check_lines(result)[3:] == [
        (
            "- free nodes in batch: 0 are free now, and it needs 4; other jobs run there:"
            " n[1-4,7-8]; reserved for job 2, which is ahead: n[5-6]; the first job there ends by"
            f" {in_minutes(179)}, the last by {in_minutes(180)}"
        ),
        "+ limits in batch: none is reached",
        f"- no job ahead: job 2 with a reserved start at {in_minutes(180)}",
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
    result = explain(scene, 2)
    assert check_lines(result)[2:4] == [
        (
            "+ suitable nodes in batch: 3 of 8 are suitable, and it needs 1; excluded by name:"
            " disliked; fewer than 8 CPUs: small; less than 8000 MiB of memory: forgetful; without"
            " these GPUs: 1 a100: plain; without the features fast: slow"
        ),
        (
            "- free nodes in batch: 0 are free now, and it needs 1; drained: sick; reserved for"
            " others: class: kept; too few CPUs are free: busy; the first job there ends by"
            f" {in_minutes(60)}, the last by {in_minutes(60)}"
        ),
    ]
    assert result.code == "Resources"


def test_job_that_can_never_start_is_reported() -> None:
    result = explain(Scene(rack(2)).waits(1, cpus_per_task=5), 1)
    assert (
        result.headline
        == "Job 1 waits: No nodes of the cluster match its request, even if idle: it will never"
        " start without a change (BadConstraints)."
    )
    assert (
        check_lines(result)[2]
        == "- suitable nodes in batch: 0 of 2 are suitable, and it needs 1; fewer than 5 CPUs:"
        " n[1-2]"
    )
    apart = [
        Node(name="a", cpus=4, memory=4_000),
        Node(name="b", cpus=4, memory=4_000, state=NodeState.DOWN),
        Node(name="c", cpus=4, memory=4_000),
    ]
    assert (
        check_lines(explain(Scene(apart).waits(1, 2, contiguous=True, excluded=("b",)), 1))[2]
        == "- suitable nodes in batch: 2 of 3 are suitable, and it needs 2; excluded by name: b;"
        " but not together with the whole request"
    )


def test_maintenance_is_named() -> None:
    result = explain(
        Scene(rack(2))
        .reserves("works", "n[1-2]", 120, 240, maintenance=True)
        .waits(1, minutes=180),
        1,
    )
    assert result.code == "ReqNodeNotAvail"
    assert "reserved for maintenance: works: n[1-2]" in check_lines(result)[3]


@pytest.mark.parametrize(
    ("fields", "code", "evidence"),
    [
        ({"held": "JobHeldUser"}, "JobHeldUser", "- eligible: Its owner holds it."),
        ({"eligible": NOW + 60}, "BeginTime", f"- eligible: from {in_minutes(1)} on"),
        (
            {"reservation": "class"},
            "Reservation",
            f"- eligible: reservation class is from {in_minutes(10)} to {in_minutes(20)}",
        ),
        ({"reservation": "gone"}, "ReservationDeleted", "- eligible: there is no reservation gone"),
        (
            {"partitions": ("removed",)},
            "PartitionConfig",
            "- partition removed accepts it: there is no such partition any more",
        ),
        (
            {"excluded": ("n9",)},
            "BadConstraints",
            f"- partition batch accepts it: {explain_reason('BadConstraints')}",
        ),
        (
            {"minutes": 200},
            "PartitionTimeLimit",
            "- partition batch accepts it: Its time limit is longer than its partition allows.",
        ),
    ],
)
def test_job_outside_the_queue_gets_its_reason(
    fields: dict[str, Any], code: str, evidence: str
) -> None:
    scene = Scene(rack(2), PartitionRules(name="batch", max_seconds=10_800)).reserves(
        "class", "n1", 10, 20
    )
    result = explain(scene.waits(1, **fields), 1)
    assert (result.code, result.position, result.ahead) == (code, None, ())
    assert evidence in check_lines(result)
    assert result.headline.startswith("Job 1 waits: ")


class Everybody(StartLimits):
    def checks(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> Iterator[LimitCheck]:
        yield LimitCheck("AssocGrpCPUMinutesLimit", "all 600 CPU-minutes are used")

    def copy(self) -> Everybody:
        return self


def test_limit_is_reported_with_its_figures() -> None:
    scene = Scene(rack(1)).waits(1)
    scene.limits = Everybody()
    result = explain(scene, 1)
    assert result.code == "AssocGrpCPUMinutesLimit"
    assert result.headline.startswith("Job 1 waits: all 600 CPU-minutes are used (")
    assert check_lines(result)[4] == (
        "- limits in batch: AssocGrpCPUMinutesLimit: all 600 CPU-minutes are used"
    )


def test_job_that_does_not_wait_is_not_explained() -> None:
    with pytest.raises(NotFound, match="job 9 does not wait"):
        explain(seed(), 9)
    with pytest.raises(NotFound, match="job 4 does not wait"):
        explain(seed(), 4)


def with_conditions(**changes: Any) -> Explanation:
    scene = seed()
    return explain(scene, 3, **changes)


RICH = JobCredit(project="chem_qmc", resource="cpu", requested=384 * 60, available=59_408 * 60)
POOR = JobCredit(
    project="chem_qmc",
    resource="gpu",
    requested=384 * 60,
    available=262 * 60,
    reason="INSUFFICIENT_CREDIT",
    detail="not enough credit: requested 384 SU, available 262 SU, short by 122 SU.",
    remedies=("a shorter time limit: -t 02:00:00",),
)
REFUSAL = BankRefusal(
    held_as=None, reason=POOR.reason, detail=POOR.detail or "", remedies=POOR.remedies, release=None
)


def test_credit_check_uses_the_figures_of_the_bank() -> None:
    rich = with_conditions(credit=RICH)
    assert "+ credit: needs a hold of 384 SU, available 59,408 of chem_qmc/cpu" in check_lines(rich)
    assert rich.headline == explain(seed(), 3).headline
    poor = with_conditions(credit=POOR, refusal=REFUSAL)
    assert (
        "- credit: needs a hold of 384 SU, available 262 of chem_qmc/gpu: short by 122 SU"
        in check_lines(poor)
    )
    waits, start, _ = rich.headline.partition(" Reserved start: ")
    assert start
    assert (
        poor.headline == f"{waits} The bank would refuse it: not enough credit: requested 384 SU,"
        " available 262 SU, short by 122 SU."
    )
    assert (poor.expected, poor.likely) == (None, None)
    observed = with_conditions(credit=replace(POOR, accepted=True))
    assert (
        "+ credit: needs a hold of 384 SU, available 262 of chem_qmc/gpu: short by 122 SU, which"
        " the bank only observes" in check_lines(observed)
    )
    assert observed.headline == rich.headline


def test_credit_check_names_another_reason_than_too_little_credit() -> None:
    """Even a job that costs nothing does not start with a frozen allocation."""
    frozen = replace(
        POOR,
        requested=0,
        available=0,
        reason="FROZEN",
        detail="the allocation is frozen: requested 0 SU, available 262 SU.",
    )
    assert (
        "- credit: needs a hold of 0 SU of chem_qmc/gpu: the allocation is frozen: requested 0 SU,"
        " available 262 SU" in check_lines(with_conditions(credit=frozen))
    )


def test_job_that_the_bank_holds_is_not_held_by_staff() -> None:
    scene = Scene(rack(1)).waits(1, held="JobHeldAdmin")
    refusal = replace(REFUSAL, held_as="Allocation_exhausted", release="by an operator")
    result = explain(scene, 1, credit=POOR, refusal=refusal)
    assert result.code == "Allocation_exhausted"
    assert result.headline == (
        "Job 1 is held by the bank (Allocation_exhausted): not enough credit: requested 384 SU,"
        " available 262 SU, short by 122 SU."
    )
    assert check_lines(result)[0] == "- eligible: the bank refused its start and holds it"
    assert result.refusal == refusal


def depending(
    *on: Dependency, any_of: bool = False, seen: dict[int | None, JobStates] | None = None
) -> str:
    dependencies = Dependencies("as Slurm has it", on, any_of)
    return check_lines(
        with_conditions(
            awaiting=OpenDependencies(
                dependencies,
                tuple((seen or {}).get(dependency.job, JobStates()) for dependency in on),
            )
        )
    )[1]


DONE, NOT_YET = (
    Dependency(kind="afterok", job=7, state=DependencyState.YES),
    Dependency(kind="afterany", job=8),
)
NEVER = Dependency(kind="afternotok", job=9, state=DependencyState.NEVER)
RUNS = JobStates(running=("8",), began=NOW - 600, ends=NOW + 1_200)


def test_every_dependency_is_reported_with_its_state() -> None:
    assert (
        depending(DONE, NOT_YET, seen={8: RUNS})
        == "- dependencies: job 7 has completed: done; job 8 has ended: not yet, it runs until"
        f" {in_minutes(20)} at the latest"
    )
    assert (
        depending(DONE, NOT_YET, any_of=True)
        == "+ dependencies: one of these is enough: job 7 has completed: done; job 8 has ended: not"
        " yet, it is not in the queue any more"
    )
    assert depending(NOT_YET, NEVER, seen={9: JobStates(ended=("COMPLETED",))}).endswith(
        "job 9 has failed: can never be satisfied, it ended as COMPLETED; "
        "so it will never start: cancel it, or change the dependency (scontrol update)"
    )
    assert "never start" not in depending(NOT_YET, NEVER, any_of=True)
    assert (
        check_lines(with_conditions(awaiting=OpenDependencies(Dependencies())))[1]
        == "+ dependencies: none is open"
    )
    assert (
        check_lines(with_conditions(awaiting=OpenDependencies(Dependencies("on:tuesdays"))))[1]
        == "- dependencies: they cannot be parsed: on:tuesdays"
    )


@pytest.mark.parametrize(
    ("on", "seen", "shown"),
    [
        (
            Dependency(kind="singleton"),
            JobStates(),
            "no other job of this name and user is running or ahead of it: not yet",
        ),
        (
            Dependency(kind="singleton"),
            JobStates(running=("4",), waiting=("5", "6"), reason="Priority"),
            (
                "no other job of this name and user is running or ahead of it: not yet, job 4 runs"
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
                "every task of array 7 has completed: not yet, job 7_1 and 1 more run until"
                f" {in_minutes(0)} at the latest, job 7_3 waits (Resources), 2 ended as COMPLETED,"
                " 1 ended as FAILED"
            ),
        ),
        (
            Dependency(kind="afternotok", job=7, all_tasks=True),
            JobStates(),
            (
                "every task of array 7 has ended, and some have failed: not yet, none of its tasks"
                " is in the queue any more"
            ),
        ),
        (
            Dependency(kind="after", job=7, task=3),
            RUNS,
            f"job 7_3 has started or was cancelled: not yet, it runs until {in_minutes(20)}",
        ),
        (
            Dependency(kind="after", job=8, minutes=30),
            RUNS,
            f"30 minutes have passed since job 8 started: not yet, that is at {in_minutes(20)}",
        ),
        (
            Dependency(kind="after", job=8, minutes=1),
            JobStates(waiting=("8",), reason="Priority"),
            "1 minute has passed since job 8 started: not yet, it waits (Priority)",
        ),
        (Dependency(kind="someday", job=7), JobStates(), "someday job 7: not yet"),
    ],
)
def test_dependency_is_reported_by_its_kind(on: Dependency, seen: JobStates, shown: str) -> None:
    assert depending(on, seen={on.job: seen}).startswith(f"- dependencies: {shown}")


@pytest.mark.parametrize(
    ("held", "on", "any_of", "headline"),
    [
        ("Dependency", [NOT_YET], False, "Job 1 waits until job 8 has ended (Dependency)."),
        ("Dependency", [DONE, NOT_YET], False, "Job 1 waits until job 8 has ended (Dependency)."),
        (
            "Dependency",
            [NEVER, NOT_YET],
            True,
            "Job 1 waits for one of 2 dependencies, the first of which is: job 9 has failed",
        ),
        (
            "DependencyNeverSatisfied",
            [NOT_YET, NEVER],
            False,
            (
                "Job 1 waits for a dependency that can never be satisfied: job 9 has failed"
                " (DependencyNeverSatisfied)."
            ),
        ),
        ("JobHeldUser", [NOT_YET], False, "Job 1 waits: Its owner holds it (JobHeldUser)."),
    ],
)
def test_reason_names_the_job_that_is_waited_for(
    held: str, on: list[Dependency], any_of: bool, headline: str
) -> None:
    scene = Scene(rack(1)).waits(1, held=held)
    awaiting = OpenDependencies(
        Dependencies("as Slurm has it", tuple(on), any_of), tuple(JobStates() for _ in on)
    )
    assert explain(scene, 1, awaiting=awaiting).headline.startswith(headline)


@pytest.mark.parametrize("of_gpu", [{"cpus_per_gpu": 2}, {"memory_per_gpu": 2_000}])
def test_node_counts_only_gpus_that_have_their_cpus_and_memory(of_gpu: dict[str, Any]) -> None:
    """Of 4 CPUs and 4,000 MiB a node has enough for two of its four GPUs."""
    size = {"memory_per_node": None if "memory_per_gpu" in of_gpu else 1, **of_gpu}
    scene = Scene(rack(2, gpus=(Gpus("a100", 4),))).runs(1, "n1", 30)
    scene.waits(2, exclusive=False, max_nodes=2, total_gpus=Gpus("a100", 4), **size)
    lines = check_lines(explain(scene, 2))
    assert "+ suitable nodes in batch: 2 of 2 are suitable, and it needs 2" in lines
    (free,) = [line for line in lines if "free nodes" in line]
    assert free.startswith("- free nodes in batch: 1 are free now, and it needs 2")


def test_job_outside_the_queue_gets_its_node_report() -> None:
    result = explain(
        Scene(rack(4)).runs(1, "n1", 30).waits(2, 2, held="JobHeldUser", excluded=("n4",)), 2
    )
    assert check_lines(result) == [
        f"- eligible: {explain_reason('JobHeldUser')}",
        "+ partition batch accepts it: within its limits",
        "+ suitable nodes in batch: 3 of 4 are suitable, and it needs 2; excluded by name: n4",
        (
            "+ free nodes in batch: 2 are free now, and it needs 2; other jobs run there: n1; "
            f"the first job there ends by {in_minutes(30)}, the last by {in_minutes(30)}"
        ),
        "+ limits in batch: none is reached",
        "- no job ahead: it is not in the queue while it is held",
    ]


def test_nodes_of_a_partition_that_rejects_the_job_are_reported() -> None:
    result = check_lines(
        explain(
            Scene(rack(2), PartitionRules(name="batch", max_seconds=600)).waits(1, 3, minutes=60), 1
        )
    )
    assert result[2:4] == [
        "- nodes of batch: 2, and this job asks for 3",
        "- MaxTime of batch: 00:10:00, and this job asks for 01:00:00",
    ]
    assert result[4].startswith("- suitable nodes in batch: 2 of 2 are suitable, and it needs 3")
    assert result[-1] == "- no job ahead: it is not in the queue while no partition accepts it"


@pytest.mark.parametrize(
    "fields", [{"partitions": ("removed",)}, {"excluded": ("n9",)}, {"constraint": "a&&b"}]
)
def test_without_partition_or_request_no_nodes_are_reported(fields: dict[str, Any]) -> None:
    result = check_lines(explain(Scene(rack(2)).waits(1, **fields), 1))
    assert not [line for line in result if line[2:].startswith("nodes of ")]
    assert result[-1] == "- no job ahead: it is not in the queue while no partition accepts it"


def test_job_of_a_deleted_reservation_is_checked_on_all_nodes() -> None:
    result = check_lines(explain(Scene(rack(2)).waits(1, reservation="gone"), 1))
    assert result[0] == "- eligible: there is no reservation gone"
    assert result[3] == "+ free nodes in batch: 2 are free now, and it needs 1"


@pytest.mark.parametrize("reason", sorted(set(NAMES.values())))
def test_job_that_is_held_for_any_reason_of_slurms_gets_its_sentence(reason: str) -> None:
    result = explain(Scene(rack(1)).waits(1, held=reason), 1)
    assert result.code == reason
    assert result.headline == f"Job 1 waits: {explain_reason(reason).removesuffix('.')} ({reason})."
    assert check_lines(result)[0] == f"- eligible: {explain_reason(reason)}"
    assert (result.position, result.expected) == (None, None)


# --- deadlines ---


def with_deadline(minutes: int, **changes: Any) -> Explanation:
    """Explain a job of an hour that gets the only node in two hours."""
    scene = Scene(rack(1)).runs(1, "n1", 120)
    return explain(scene.waits(2, minutes=60, deadline=NOW + minutes * 60, **changes), 2)


@pytest.mark.parametrize(
    ("minutes", "changes", "ok", "note"),
    [
        (180, {}, True, ""),
        (179, {}, False, " Its expected start is too late to end by its deadline."),
        (150, {"time_min": 30 * 60}, True, ""),
        (149, {"time_min": 30 * 60}, False, " Its expected start is too late"),
        (60, {}, False, " Its expected start is too late"),
        (59, {}, False, " It cannot end by its deadline any more: slurmctld will remove it"),
    ],
)
def test_deadline_is_compared_with_the_expected_start(
    minutes: int, changes: dict[str, Any], ok: bool, note: str
) -> None:
    result = with_deadline(minutes, **changes)
    check = result.checks[-1]
    least = changes.get("time_min", 3_600) // 60
    assert (check.what, check.ok) == ("deadline", ok)
    assert check.evidence.startswith(
        f"it must end by {in_minutes(minutes)}, so it must start by {in_minutes(minutes - least)}; "
    )
    assert ("deadline" in result.headline) == bool(note)
    assert note in result.headline


def history_of_ann() -> RunTimeHistory[str]:
    history: RunTimeHistory[str] = RunTimeHistory()
    for part in (10, 20, 30, 90, 100) * 4:
        history.add("ann", part, 100)
    return history


def test_component_has_the_likely_start_of_the_whole() -> None:
    """Component 2 fits now, but waits for component 3, and so for job 1 of ann to end."""
    scene = Scene(rack(2)).runs(1, "n1", 120, user="ann", since=0)
    scene.waits(2, het_job=2).waits(3, het_job=2)
    (first, second) = (explain(scene, number, history=history_of_ann()) for number in (2, 3))
    assert first.likely is not None
    assert first.likely.earliest is not None
    assert first.likely.earliest > NOW
    assert first.likely == second.likely


def test_deadline_is_compared_with_the_likely_range() -> None:
    history = history_of_ann()

    def outlook(minutes: int) -> tuple[bool, str]:
        scene = Scene(rack(1)).runs(1, "n1", 120, user="ann", since=0)
        scene.waits(2, minutes=60, deadline=NOW + minutes * 60)
        result = explain(scene, 2, history=history)
        assert "its likely start is from" in result.checks[-1].evidence
        return result.checks[-1].ok, result.headline.partition("). ")[2]

    reserved = f"Reserved start: {in_minutes(120)}."
    assert outlook(240) == (True, reserved)
    assert outlook(100) == (False, f"{reserved} It may start too late to end by its deadline.")
    assert outlook(65) == (
        False,
        f"{reserved} Its expected start is too late to end by its deadline.",
    )


def test_job_without_a_deadline_has_no_such_check() -> None:
    assert not [check for check in explain(seed(), 3).checks if check.what == "deadline"]


def test_deadline_is_at_risk_while_the_start_is_unknown() -> None:
    deadline = NOW + 240 * 60
    result = explain(Scene(rack(1)).waits(1, held="JobHeldUser", minutes=60, deadline=deadline), 1)
    assert check_lines(result)[-1] == (
        f"- deadline: it must end by {in_minutes(240)}, so it must start by {in_minutes(180)};"
        " its start is unknown"
    )
    assert result.headline.endswith(" It may start too late to end by its deadline.")


def test_deadline_of_a_job_in_a_removed_partition_is_compared_with_its_own_limit() -> None:
    scene = Scene(rack(1)).waits(1, partitions=("removed",), deadline=NOW + 240 * 60)
    result = explain(scene, 1)
    assert f"it must start by {in_minutes(180)}; " in result.checks[-1].evidence
