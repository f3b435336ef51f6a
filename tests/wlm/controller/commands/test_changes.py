"""Changes by scontrol: fields become requests of the core, and bad ones are refused by name."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from fairbank.cluster.partition_rules import PartitionRules, PartitionState
from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import Conflict, FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.core.time import Instant
from fairbank.priority.limits.usage import QosLimits
from fairbank.wlm.config.entries import slurm_conf_keywords
from fairbank.wlm.config.keyword import PARTITIONS
from fairbank.wlm.controller.commands.field_names import find_field
from fairbank.wlm.controller.commands.job_changes import FIELDS, ChangeContext, job_update
from fairbank.wlm.controller.commands.machine_changes import (
    RESERVATION_FIELDS,
    changed_reservation,
    entity_name,
    node_updates,
    partition_update,
)
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.node_states import NodeCondition, NodeEvent
from tests.wlm.core.world import ALICE, BOB, OPERATOR, START, World, named

NOW = START.wall


def world() -> World:
    return World(
        PartitionRules(name="main", is_default=True),
        PartitionRules(name="long"),
        qos={"high": QosLimits(name="high")},
        licenses={"matlab": 2},
    )


def update(lab: World, number: int, **fields: str) -> ev.UpdateJob:
    context = ChangeContext(lab.job(number), lab.core.state, lab.now)
    return job_update(named(number), fields, context)


@pytest.mark.parametrize(
    ("field", "text", "changes"),
    [
        ("TimeLimit", "30", {"limit": 1_800}),
        ("TimeLimit", "+5", {"limit": 900}),
        ("timelimit", "-5", {"limit": 300}),
        ("TimeLimit", "-1", {"limit": 540}),
        ("TimeLimit", "+0", {"limit": 600}),
        ("TimeLimit", "UNLIMITED", {"limit": 10 * 366 * 86_400}),
        ("TimeLim", "30", {"limit": 1_800}),
        ("TimeMin", "5", {"time_min": 300}),
        ("StartTime", "now+1hour", {"eligible": NOW + 3_600}),
        ("Deadline", "now+1hour", {"deadline": NOW + 3_600}),
        ("Priority", "0", {"priority": 0}),
        ("Nice", "10", {"nice": 10}),
        ("SiteFactor", "-50", {"site_factor": -50}),
        ("Requeue", "0", {"may_requeue": False}),
        ("Partition", "long,main", {"partitions": ("long", "main")}),
        ("QOS", "high", {"qos": "high"}),
        ("ReservationName", "", {"reservation": None}),
        ("ArrayTaskThrottle", "0", {"throttle": None}),
        ("ArrayTaskThrottle", "3", {"throttle": 3}),
        ("Dependency", "", {"dependencies": None}),
        ("Licenses", "matlab:2", {"licenses": {"matlab": 2}}),
        ("Comment", "a b", {"comment": "a b"}),
        ("StdOut", "x.out", {"output": "x.out"}),
        ("MailType", "END", {"mail_types": frozenset({"END"})}),
    ],
)
def test_field_of_a_job_becomes_a_change(field: str, text: str, changes: dict[str, Any]) -> None:
    lab = world()
    body = update(lab, lab.submit(limit=600), **{field: text})
    fields = msgspec.structs.asdict(body)
    assert {name: value for name, value in fields.items() if value is not UNSET} == {
        "jobs": body.jobs,
        **changes,
    }


@pytest.mark.parametrize(
    ("field", "text", "changes"),
    [
        ("NumNodes", "2-3", {"nodes": 2, "max_nodes": 3}),
        ("NumTasks", "4", {"tasks": 4}),
        ("NumCPUs", "4", {"min_cpus": 4}),
        ("CpusPerTask", "3", {"cpus_per_task": 3}),
        ("MinMemoryNode", "2G", {"memory_per_node": 2_048, "memory_per_cpu": None}),
        ("MinMemoryCPU", "100", {"memory_per_node": None, "memory_per_cpu": 100}),
        ("ReqNodeList", "n[0-1]", {"required": ("n0", "n1")}),
        ("ExcNodeList", "n1", {"excluded": ("n1",)}),
        ("Features", "a&b", {"constraint": "a&b"}),
        ("Contiguous", "yes", {"contiguous": True}),
        ("OverSubscribe", "no", {"exclusive": True, "shared": False}),
    ],
)
def test_field_of_the_resources_changes_only_itself(
    field: str, text: str, changes: dict[str, Any]
) -> None:
    lab = world()
    number = lab.submit(cpus=2)
    body = update(lab, number, **{field: text})
    assert body.wanted == msgspec.structs.replace(lab.job(number).request.wanted, **changes)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("TimeLimit", "-10"),
        ("TimeLimit", "soon"),
        ("EndTime", "now+1hour"),
        ("Partition", "none"),
        ("QOS", "none"),
        ("Licenses", "matlab:3"),
        ("Features", "a&"),
        ("Contiguous", "maybe"),
        ("OverSubscribe", "maybe"),
        ("SiteFactor", "2147483646"),
        pytest.param("Comment", "x" * 4_097, id="long"),
        pytest.param("StdOut", "a\0", id="NUL"),
        ("Ti", "1"),
        ("Cost", "1"),
    ],
)
def test_bad_change_of_a_job_is_refused(field: str, text: str) -> None:
    lab = world()
    with pytest.raises(FairbankError):
        update(lab, lab.submit(limit=600), **{field: text})


def test_end_time_of_a_running_job_sets_its_limit() -> None:
    lab = world()
    number = lab.run_one(limit=600)
    lab.advance(60)
    body = update(lab, number, EndTime="now+30minutes")
    assert body.limit == 60 + 1_800
    assert lab.request(body, OPERATOR) is None
    assert lab.job(number).request.limit == 1_860


def test_changes_are_carried_out_and_rights_hold() -> None:
    lab = world()
    number = lab.submit()
    before = lab.job(number).request.priority
    assert lab.request(update(lab, number, Nice="10", StdErr="e", Licenses="matlab")) is None
    job = lab.job(number)
    assert (job.request.priority, job.request.licenses) == (before - 10, {"matlab": 1})
    assert (job.submission.nice, job.submission.error) == (10, "e")
    for body, caller in (
        (update(lab, number, Comment="x"), BOB),
        (update(lab, number, Nice="-1"), ALICE),
    ):
        assert isinstance(lab.request(body, caller), Forbidden)


TEXTS = st.one_of(
    st.text(max_size=20),
    st.from_regex(r"[0-9n@%:,\[\]+&|_-]{0,12}", fullmatch=True),
    st.sampled_from(["", "0", "-1", "+5", "now", "UNLIMITED", "ALL", "n[0-1]", "\0", "-", "+"]),
)
LAB = world()
NUMBER = LAB.submit(limit=600)


@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), TEXTS, max_size=3))
def test_any_fields_of_a_job_are_read_or_refused(fields: dict[str, str]) -> None:
    with suppress(FairbankError):
        update(LAB, NUMBER, **fields)


@given(st.dictionaries(st.sampled_from(sorted(RESERVATION_FIELDS)), TEXTS, max_size=5))
def test_any_fields_of_a_reservation_are_read_or_refused(fields: dict[str, str]) -> None:
    with suppress(FairbankError):
        changed_reservation(LAB.core.state, fields, is_new=True, user="olga", now=LAB.now)


PARTITION_FIELDS = sorted(keyword.name for keyword in slurm_conf_keywords(PARTITIONS).values())


@given(st.dictionaries(st.sampled_from(PARTITION_FIELDS), TEXTS, max_size=4))
def test_any_fields_of_a_partition_are_read_or_refused(fields: dict[str, str]) -> None:
    with suppress(FairbankError):
        partition_update(LAB.core.state, fields, is_new=True)


# --- nodes ---


@pytest.mark.parametrize(
    ("state", "event"),
    [("DRAIN", "DRAINED"), ("resume", "RESUMED"), ("UNDRAIN", "RESUMED"), ("Down", "DOWN")],
)
def test_state_of_nodes_becomes_an_event(state: str, event: str) -> None:
    lab = world()
    bodies = node_updates(lab.core.state, "n[0-1]", {"State": state, "Reason": "a disk"})
    assert bodies == [ev.UpdateNode(name, NodeEvent[event], "a disk") for name in ("n0", "n1")]
    assert len(node_updates(lab.core.state, "ALL", {"State": "RESUME"})) == 2


def test_weight_and_features_of_a_node_change_without_its_state() -> None:
    lab = world()
    fields = {"Weight": "7", "AvailableFeatures": "fast,big", "Comment": "new", "Extra": "x=1"}
    (body,) = node_updates(lab.core.state, "n1", fields)
    features = frozenset({"fast", "big"})
    assert body == ev.UpdateNode("n1", weight=7, features=features, comment="new", extra="x=1")


def test_drained_node_has_who_gave_the_reason_and_when() -> None:
    lab = world()
    (body,) = node_updates(lab.core.state, "n0", {"State": "DRAIN", "Reason": "a disk"})
    lab.request(body, OPERATOR)
    status = lab.core.state.nodes["n0"]
    assert status.condition is NodeCondition.DRAIN
    assert (status.reason, status.reason_user, status.reason_since) == ("a disk", "olga", NOW)


def test_another_reason_of_a_drained_node_replaces_the_first() -> None:
    lab = world()
    for fields in ({"State": "DRAIN", "Reason": "a disk"}, {"Reason": "a fan"}):
        (body,) = node_updates(lab.core.state, "n0", fields)
        assert lab.request(body, OPERATOR) is None
        assert lab.core.state.nodes["n0"].reason == fields["Reason"]
    (body,) = node_updates(lab.core.state, "n0", {"State": "DRAIN", "Reason": "a cable"})
    lab.request(body, OPERATOR)
    assert lab.core.state.nodes["n0"].reason == "a cable"
    (body,) = node_updates(lab.core.state, "n1", {"Reason": "x"})
    assert isinstance(lab.request(body, OPERATOR), Conflict)


@pytest.mark.parametrize(
    ("nodes", "fields"),
    [
        ("n9", {"State": "DRAIN", "Reason": "x"}),
        ("n0", {"RealMemory": "3"}),
        ("n0", {"Weight": "-1"}),
        ("n0", {"State": "BAKE"}),
        ("n0", {"Reason": ""}),
        ("n0", {"Colour": "x"}),
    ],
    ids=["unknown", "settings", "weight", "state", "no state", "field"],
)
def test_bad_change_of_a_node_is_refused(nodes: str, fields: dict[str, str]) -> None:
    with pytest.raises(FairbankError):
        node_updates(world().core.state, nodes, fields)


# --- partitions ---


def test_partition_is_created_changed_and_deleted() -> None:
    lab = world()
    fields = {"PartitionName": "fast", "Nodes": "n0", "MaxTime": "1:00:00", "priority_tier": "1"}
    with pytest.raises(FairbankError):
        partition_update(lab.core.state, fields, is_new=True)
    del fields["priority_tier"]
    body = partition_update(lab.core.state, fields, is_new=True)
    assert body.rules == PartitionRules(name="fast", nodes=("n0",), max_seconds=3_600)
    assert lab.request(body, OPERATOR) is None
    with pytest.raises(Conflict):
        partition_update(lab.core.state, fields, is_new=True)
    changed = partition_update(
        lab.core.state, {"PartitionName": "fast", "State": "DOWN"}, is_new=False
    )
    assert changed.rules == msgspec.structs.replace(body.rules, state=PartitionState.DOWN)
    with pytest.raises(NotFound):
        partition_update(lab.core.state, {"PartitionName": "none"}, is_new=False)
    assert (
        lab.request(ev.DeletePartition(entity_name("partition", {"Partition": "fast"})), OPERATOR)
        is None
    )
    assert "fast" not in lab.core.state.partitions


# --- reservations ---


def reserve(lab: World, *, is_new: bool = True, **fields: str) -> Reservation:
    made = changed_reservation(lab.core.state, fields, is_new=is_new, user="olga", now=lab.now)
    assert lab.request(ev.SetReservation(made), OPERATOR) is None
    return made


def test_reservation_takes_free_nodes_and_a_free_name() -> None:
    lab = world()
    first = reserve(lab, NodeCnt="1", StartTime="now+1hour", Duration="60", Users="alice,bob")
    assert first == Reservation(
        name="olga_1",
        nodes=("n0",),
        begin=Instant(NOW + 3_600),
        end=Instant(NOW + 7_200),
        users=frozenset({"alice", "bob"}),
    )
    second = reserve(lab, NodeCnt="1", StartTime="now+1hour", Duration="60", Accounts="bio")
    assert (second.name, second.nodes) == ("olga_2", ("n1",))
    with pytest.raises(Conflict):
        reserve(lab, Nodes="n0", StartTime="now+90minutes", Duration="60", Users="alice")
    third = reserve(
        lab, Nodes="ALL", StartTime="now", Duration="600", Users="root", Flags="MAINT,IGNORE_JOBS"
    )
    assert (third.nodes, third.maintenance, third.ignores_jobs) == (("n0", "n1"), True, True)


def test_reservation_waits_for_running_jobs_unless_it_ignores_them() -> None:
    lab = world()
    lab.run_one(limit=7_200)
    with pytest.raises(Conflict):
        reserve(lab, Nodes="n0", StartTime="now+1hour", Duration="60", Users="alice")
    reserve(lab, Nodes="n0", StartTime="now+3hours", Duration="60", Users="alice")


def test_change_of_a_reservation_keeps_the_rest() -> None:
    lab = world()
    first = reserve(lab, ReservationName="r", Nodes="n0", Duration="60", Users="alice")
    changed = reserve(lab, is_new=False, ReservationName="r", Duration="120", Licenses="matlab")
    expected = {"end": NOW + 7_200, "licenses": {"matlab": 1}}
    assert changed == msgspec.structs.replace(first, **expected)


@pytest.mark.parametrize(
    "fields",
    [
        {"Nodes": "n0", "Duration": "60"},
        {"Nodes": "n0", "Users": "alice"},
        {"Duration": "60", "Users": "alice"},
        {"NodeCnt": "3", "Duration": "60", "Users": "alice"},
        {"Nodes": "n0", "Duration": "60", "Users": "alice", "Flags": "DAILY"},
        {"Nodes": "n0", "Duration": "60", "Users": "alice", "PartitionName": "none"},
        {"Nodes": "n0", "EndTime": "2001-01-01", "Users": "alice"},
        {"Nodes": "n0", "Duration": "60", "Users": "alice", "ReservationName": "a\nb"},
        {"Nodes": "n0", "Duration": "60", "Users": "alice", "ReservationName": "a,b"},
    ],
    ids=["users", "length", "nodes", "too many", "flag", "partition", "end", "line", "comma"],
)
def test_bad_reservation_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(FairbankError):
        reserve(world(), **fields)


def test_error_says_what_a_word_is_not() -> None:
    with pytest.raises(InvalidInput, match="'DAILY' is not a flag"):
        reserve(world(), Nodes="n0", Duration="60", Users="alice", Flags="DAILY")
    with pytest.raises(InvalidInput, match="'BAKE' is not a state to set"):
        node_updates(world().core.state, "n0", {"State": "BAKE"})
    with pytest.raises(InvalidInput, match="ends before it begins"):
        reserve(world(), Nodes="n0", EndTime="2001-01-01", Users="alice")


def test_field_may_be_cut_short_if_one_begins_so() -> None:
    known = {"TimeLimit": 1, "TimeMin": 2, "Nice": 3}
    assert (find_field("timelimit", known), find_field("TimeM", known)) == (1, 2)
    for name in ("Time", "Ni", "Nicer"):
        with pytest.raises(FairbankError):
            find_field(name, known)
