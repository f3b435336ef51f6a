"""Limits of a queue, over values that no parser made."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.cluster.license import License
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.tres import BillingRule
from fairbank.jobqueue.limits import CountedJob, LimitInputs, QueueLimits
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord, LimitUsage, QosLimits
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import NodeShare, Placement

FIRST_NODE = Placement(node_set.of([0]), (NodeShare(0, 2, 100, ()),), "cpu")
GROUP = AssociationLimits(tres={LimitKind.GRP_TRES: {"cpu": 4}})


def job(number: int, **changes: Any) -> PendingJob:
    fields = {"user": "alice", "account": "bio", "qos": "normal", "limit": 3_600}
    return PendingJob(number=number, tres={"cpu": 2, "node": 1}, **{**fields, **changes})


def limits(**changes: Any) -> QueueLimits:
    records = [
        LimitRecord(name="root"),
        LimitRecord(name="bio", parent="root", limits=GROUP),
        LimitRecord(name="bio", user="alice", parent="bio"),
    ]
    inputs: dict[str, Any] = {
        "enforced": Enforced(),
        "running": {},
        "associations": {(one.name, one.user, one.partition): one for one in records},
        "qos": {"normal": QosLimits(name="normal")},
        "partitions": {"cpu": PartitionRules(name="cpu")},
        "billing_rule": BillingRule.SUM,
        "licenses": {},
        "nodes": ("n1",),
    }
    return QueueLimits(LimitInputs(**{**inputs, **changes}))


def test_started_job_counts_until_it_ends_and_in_its_own_copy_only() -> None:
    before = limits(running={1: CountedJob("bio", "alice", "normal", "cpu", {"cpu": 1})})
    assert before.hold_reason(job(2), "cpu") is None
    after = before.copy()
    after.record_start(job(2), FIRST_NODE)
    assert after.hold_reason(job(3), "cpu") == "AssocGrpCpuLimit"
    assert before.hold_reason(job(3), "cpu") is None
    after.record_end(job(2), FIRST_NODE, 60)
    assert after.hold_reason(job(3), "cpu") is None


def test_charge_of_an_ended_job_is_added_to_the_usage_before() -> None:
    """The QOS charges half of an hour of 2 CPUs: 60 CPU minutes to the 60 that were used."""
    qos = QosLimits(
        name="normal",
        limits=AssociationLimits(tres={LimitKind.GRP_TRES_MINS: {"cpu": 120}}),
        used=LimitUsage(seconds={"cpu": 3_600.0}),
        usage_factor=0.5,
    )
    queue = limits(qos={"normal": qos})
    queue.record_start(job(2), FIRST_NODE)
    assert queue.hold_reason(job(3), "cpu") is None
    queue.record_end(job(2), FIRST_NODE, 3_600)
    assert queue.hold_reason(job(3), "cpu") == "QOSGrpCPUMinutesLimit"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param({"licenses": {"matlab": 1}}, "Licenses", id="license"),
        pytest.param({"array": 2, "throttle": 1}, "JobArrayTaskLimit", id="array"),
    ],
)
def test_licenses_and_array_slots_are_taken_and_returned(
    request_: dict[str, Any], reason: str
) -> None:
    queue = limits(licenses={"matlab": License("matlab", total=1, free=1)})
    first, second = job(2, **request_), job(3, **request_)
    queue.record_start(first, FIRST_NODE)
    assert queue.hold_reason(second, "cpu") == reason
    assert queue.hold_reason(job(4), "cpu") is None
    queue.record_end(first, FIRST_NODE, 60)
    assert queue.hold_reason(second, "cpu") is None
