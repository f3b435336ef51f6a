"""Input of a pass: impossible values are refused before any decision."""

from __future__ import annotations

import pytest

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import InvalidInput
from fairbank.scheduling.machines.node_snapshot import apply_plan
from fairbank.scheduling.machines.nodes import PreemptBy, Preemption
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import PlacementSearch
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, OneEach, Scene


def test_no_two_jobs_have_a_number() -> None:
    with pytest.raises(InvalidInput, match="job 1 is there 2 times") as no:
        _ = Scene(rack(2)).runs(1, "n1", 60).waits(1).snapshot
    assert no.value.field == "jobs"


def test_running_jobs_hold_no_more_than_there_is() -> None:
    scene = Scene(rack(2)).runs(1, "n1", 60)
    scene.running.append(scene.running[0]._replace(number=2))
    with pytest.raises(InvalidInput, match="hold more of n1 than there is") as no:
        _ = scene.snapshot
    assert no.value.remedy == "look which of these jobs still run there: 1, 2"


def test_no_two_reservations_have_a_name() -> None:
    with pytest.raises(InvalidInput, match="reservation class is there twice"):
        _ = Scene(rack(2)).reserves("class", "n1", 0, 60).reserves("class", "n2", 0, 60).snapshot


def test_reservation_holds_those_of_its_nodes_that_are_there() -> None:
    """A node may be removed from the cluster while it is reserved. No pass may fail because of
    that.
    """
    output = Scene(rack(2)).reserves("class", "n1,n9", 0, 60).waits(1).waits(2).both()
    assert output.starts == {1: "n2"}


@pytest.mark.parametrize("by", [PreemptBy.PARTITION, PreemptBy.QOS])
def test_job_may_outlive_its_partition(by: PreemptBy) -> None:
    scene = Scene(rack(2), PartitionRules(name="batch", tier=2), PartitionRules(name="removed"))
    scene.runs(1, "n1", 60, partition="removed").waits(2, nodes=2)
    scene.preemption, scene.cluster = (
        Preemption(by=by),
        NodeTable(rack(2), [PartitionRules(name="batch", tier=2)]),
    )
    scene.places = PlacementSearch(scene.cluster)
    output = scene.both()
    assert output.starts == {}
    assert output.planned == {2: (60, "n[1-2]")}


def test_started_job_runs_and_no_longer_waits() -> None:
    scene = Scene(rack(2), PartitionRules(name="batch")).runs(1, "n1", 60).waits(2).waits(3)
    snapshot = scene.snapshot
    after = apply_plan(snapshot, scene.main().plan, NOW)
    assert [job.number for job in after.queue.jobs()] == [3]
    assert [job.number for job in after.running] == [1, 2]
    assert after.machine.free.idle == 0
    assert [job.number for job in snapshot.queue.jobs()] == [2, 3]
    assert snapshot.machine.free.idle == 0b10  # n2


def test_started_job_counts_against_limits_of_the_next_pass() -> None:
    scene = Scene(rack(4)).waits(1, user="ada").waits(2, user="ada").waits(3, user="bob")
    scene.limits = OneEach("batch")
    output = scene.both()
    assert output.starts == {1: "n1", 3: "n2"}
    assert output.reasons == {2: "QOSMaxJobsPerUserLimit"}
    assert scene.limits.hold_reason(scene.pending[0], "batch") is None


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": ""}, "partition.name"),
        ({"tier": -1}, "p.tier"),
        ({"max_seconds": 5}, "p.max_seconds"),
        ({"min_nodes": 4, "max_nodes": 2}, "p.max_nodes"),
        ({"rows": 0}, "p.rows"),
        ({"memory_per_cpu": 1, "memory_per_node": 1}, "p.memory_per_cpu"),
    ],
)
def test_rules_that_no_partition_can_have_are_reported(values: dict[str, int], field: str) -> None:
    whole: dict[str, object] = {"name": "p", **values}
    with pytest.raises(InvalidInput) as no:
        PartitionRules(**whole)  # type: ignore[arg-type]
    assert no.value.field == field
