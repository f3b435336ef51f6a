"""Requests: submission, rights, holds, selections of tasks, order, changes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from fairbank.cluster.partition_rules import AccessList, PartitionRules, PartitionState
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import Busy, Conflict, FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.core.submission.dependencies import parse_dependencies
from fairbank.core.time import Instant
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord, QosLimits
from fairbank.wlm.controller.configuration import check_stored_jobs, stored_state
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.controller import Core
from fairbank.wlm.core.effects import ChangeLimit, Reply, Send
from fairbank.wlm.core.jobs import ExpectedStart
from fairbank.wlm.core.node_states import NodeEvent
from fairbank.wlm.core.requests.rights import may_see
from fairbank.wlm.protocol.messages import NotifyJob, SignalJob, SignalTarget
from tests.wlm.core.world import ALICE, BOB, OPERATOR, World, named, submission

ROOT = ev.Caller(0, "root")


def job_names(world: World) -> list[str]:
    return sorted(job.name for job in world.core.state.jobs.values())


# --- submission


def test_job_gets_defaults_of_the_cluster_and_its_partition() -> None:
    world = World(PartitionRules(name="main", is_default=True, default_seconds=60))
    job = world.job(world.submit(limit=None, cpus=2))
    assert (job.request.partitions, job.request.limit) == (("main",), 60)
    assert job.request.tres == {"cpu": 2, "node": 1}
    assert world.job(world.submit()).request.priority < job.request.priority


@pytest.mark.parametrize(
    ("fields", "error", "about"),
    [
        ({"partitions": ("night",)}, NotFound, "no partition 'night'"),
        ({"cpus": 5}, InvalidInput, "could ever run"),
        ({"nodes": 3}, InvalidInput, "could ever run"),
        ({"reservation": "exam"}, NotFound, "no reservation"),
        ({"array": "0-2000"}, InvalidInput, "MaxArraySize"),
        ({"name": ""}, InvalidInput, "not the name"),
        ({"name": "a\nb"}, InvalidInput, "not the name"),
        ({"name": "n" * 300}, InvalidInput, "not the name"),
        ({"priority": 9}, Forbidden, "only operators"),
        ({"uid": 1001}, Forbidden, "another user"),
        ({"dependency": "afterok:99"}, NotFound, "no job 99"),
        ({"partitions": ("closed",)}, Conflict, "accepts no jobs"),
        ({"limit": 60, "time_min": 120}, InvalidInput, "least time of 2 minutes"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refused_submission_changes_nothing(
    fields: dict[str, Any], error: type[FairbankError], about: str
) -> None:
    world = World(
        PartitionRules(name="main", is_default=True, max_seconds=3_600),
        PartitionRules(name="closed", state=PartitionState.INACTIVE),
    )
    before = dict(world.rows)
    answer = world.submit(**fields)
    assert isinstance(answer, error)
    assert about in str(answer)
    assert world.rows == before


@pytest.mark.parametrize(
    ("fields", "cause", "remedy"),
    [
        ({"cpus": 5}, "3 of 3 nodes cannot be used (fewer than 5 CPUs), and it needs 1", "-c 4"),
        (
            {"nodes": 2, "memory": 1_500},
            "3 of 3 nodes cannot be used (less than 1500 MiB of memory), and it needs 2",
            "--mem=1000M",
        ),
        ({"nodes": 4, "cpus": 2}, "3 nodes can be used, and it needs 4", "-N 3 -n 3"),
        ({"cpus": 5, "memory": 1_500}, "3 of 3 nodes cannot be used", "sinfo -Nl lists"),
    ],
    ids=["CPUs", "memory", "nodes", "both"],
)
def test_request_that_can_never_run_is_refused_with_the_nearest_that_can(
    fields: dict[str, Any], cause: str, remedy: str
) -> None:
    answer = World(nodes=3).submit(**fields)
    assert isinstance(answer, InvalidInput)
    assert answer.field == "nodes"
    assert f"could ever run this job: {cause}" in answer.message
    assert remedy in (answer.remedy or "")


def test_feature_and_node_that_do_not_exist_are_named() -> None:
    world = World()
    body = submission()
    for wanted, error, field, about in (
        (ResourceRequest(constraint="tape"), InvalidInput, "constraint", "the features tape"),
        (ResourceRequest(required=("n7",)), NotFound, "nodelist", "n7"),
    ):
        answer = world.request(structs.replace(body, job=structs.replace(body.job, wanted=wanted)))
        assert (type(answer), answer.field) == (error, field)
        assert about in answer.message


SMALL = PartitionRules(name="small", is_default=True, max_seconds=600, max_nodes=1)
LARGE = PartitionRules(name="large")


@pytest.mark.parametrize(
    ("enforced", "partitions", "is_accepted"),
    [
        ("NO", "small", True),
        ("NO", "small large", True),
        ("ANY", "small", False),
        ("ANY", "small large", True),
        ("ALL", "small large", False),
        ("ALL", "large", True),
    ],
)
def test_limits_of_partitions_refuse_jobs_as_enforce_part_limits_says(
    enforced: str, partitions: str, is_accepted: bool
) -> None:
    requests: list[tuple[dict[str, Any], str]] = [({"limit": 900}, "time"), ({"nodes": 2}, "nodes")]
    for fields, field in requests:
        world = World(SMALL, LARGE, part_limits=enforced)
        answer = world.submit(partitions=tuple(partitions.split()), **fields)
        assert isinstance(answer, int) is is_accepted
        if not is_accepted:
            assert (type(answer), answer.field) == (Forbidden, field)
            assert "partition small does not accept this job: Max" in answer.message


def test_job_beyond_a_limit_that_is_not_enforced_waits_with_the_reason() -> None:
    world = World(SMALL)
    numbers = [world.submit(limit=900), world.submit(nodes=2)]
    world.settle()
    reasons = [world.reason(number) for number in numbers]
    assert reasons == ["PartitionTimeLimit", "PartitionNodeLimit"]


def test_request_for_fewer_nodes_is_raised_to_those_of_the_partition() -> None:
    world = World(PartitionRules(name="main", is_default=True, min_nodes=2), part_limits="ALL")
    number = world.submit()
    world.settle()
    run = world.job(number).run
    assert run is not None
    assert run.allocation.nodes == ("n0", "n1")


def accounts_of_alice(**parents: str) -> dict[tuple[str, str, str], LimitRecord]:
    """Return the associations of accounts, by the account above, of which alice is a user."""
    records = [LimitRecord(name="root")]
    for account, parent in parents.items():
        records.append(LimitRecord(name=account, parent=parent))
        records.append(LimitRecord(name=account, user="alice", parent=account))
    return {(one.name, one.user, one.partition): one for one in records}


@pytest.mark.parametrize("enforced", ["NO", "ALL"])
def test_partition_accepts_its_accounts_and_those_below_and_its_qos(enforced: str) -> None:
    main = PartitionRules(
        name="main",
        is_default=True,
        accounts=AccessList(("bio",), "AccountNotAllowed"),
        qos=AccessList(("low",), "QOSNotAllowed", denies=True),
    )
    records = accounts_of_alice(bio="root", cells="bio", chem="root")
    world = World(main, part_limits=enforced, associations=records)
    assert world.submit(account="cells") == 1
    requests: list[tuple[dict[str, Any], str, str]] = [
        ({"account": "chem"}, "account", "AccountNotAllowed"),
        ({"qos": "low"}, "qos", "QOSNotAllowed"),
    ]
    for fields, field, reason in requests:
        answer = world.submit(**fields)
        if enforced == "ALL":
            assert (type(answer), answer.field) == (Forbidden, field)
        else:
            world.settle()
            assert world.reason(answer) == reason


def limited_world(kind: LimitKind, limit: int, **qos: Any) -> World:
    """Return a world with a limit of the account bio, or of the QOS normal."""
    limits = AssociationLimits(jobs={kind: limit})
    records = accounts_of_alice(bio="root", cells="bio")
    if not qos:
        key = ("bio", "", "")
        records[key] = structs.replace(records[key], limits=limits)
    normal = QosLimits(name="normal", limits=limits if qos else AssociationLimits(), **qos)
    return World(associations=records, qos={"normal": normal}, enforced=Enforced(limits=True))


def test_number_of_submitted_jobs_is_limited_with_tasks_and_accounts_below() -> None:
    world = limited_world(LimitKind.GRP_SUBMIT_JOBS, 4)
    assert world.submit(array="1-2", held=True) == 1
    assert world.submit(account="cells", held=True) == 2
    refused = world.submit(array="1-2", held=True)
    assert (type(refused), refused.field) == (Forbidden, "limits")
    assert refused.message.startswith(
        "AssocGrpSubmitJobsLimit: association of account bio allows 4"
    )
    assert world.submit(held=True) == 3
    assert isinstance(world.submit(held=True), Forbidden)
    world.restart()
    assert isinstance(world.submit(held=True), Forbidden)
    world.request(ev.CancelJob(named("1_[1]")))
    assert isinstance(world.submit(held=True), int)


def test_qos_limits_the_submitted_jobs_of_each_user() -> None:
    world = limited_world(LimitKind.MAX_SUBMIT_JOBS_PER_USER, 1, deny_on_limit=False)
    number = world.run_one()
    assert isinstance(world.submit(), Forbidden)
    world.end(number)
    assert isinstance(world.submit(), int)


@pytest.mark.parametrize("denies", [True, False])
def test_job_above_a_limit_is_refused_only_by_deny_on_limit(denies: bool) -> None:
    limits = AssociationLimits(wall={LimitKind.MAX_WALL: 5})
    qos = {"normal": QosLimits(name="normal", limits=limits, deny_on_limit=denies)}
    world = World(qos=qos, enforced=Enforced(limits=True))
    answer = world.submit(limit=600)
    assert isinstance(answer, Forbidden) is denies
    if not denies:
        world.settle()
        assert world.reason(answer) == "QOSMaxWallDurationPerJobLimit"


def test_qos_must_be_one_that_the_account_may_use() -> None:
    world = World(allowed_qos={("bio", "alice", ""): ("low", "normal")})
    assert world.submit(qos="low", held=True) == 1
    refused = world.submit(qos="high")
    assert (type(refused), refused.field, refused.remedy) == (
        Forbidden,
        "qos",
        "use one of: low, normal",
    )
    assert isinstance(world.request(ev.UpdateJob(jobs=named(1), qos="high")), Forbidden)
    assert world.submit(BOB, qos="high") == 2


def test_job_has_the_flags_of_its_qos_also_after_a_change() -> None:
    flags = {"long": frozenset({"PartitionTimeLimit"})}
    world = World(SMALL, qos_flags=flags, part_limits="ALL")
    number = world.submit(qos="long", limit=900, held=True)
    assert world.job(number).request.qos_flags == flags["long"]
    assert isinstance(world.request(ev.UpdateJob(jobs=named(number), qos="normal")), Forbidden)
    assert world.request(ev.UpdateJob(jobs=named(number), qos="normal", limit=600)) is None
    assert not world.job(number).request.qos_flags


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"associations": {("chem", "alice", ""): LimitRecord(name="chem")}}, "InvalidAccount"),
        ({"allowed_qos": {("bio", "alice", ""): ("low",)}}, "InvalidQOS"),
    ],
    ids=["account", "QOS"],
)
def test_job_waits_whose_account_or_qos_is_gone_after_a_change_of_settings(
    changes: dict[str, Any], reason: str
) -> None:
    world = World(nodes=1, associations=accounts_of_alice(bio="root"))
    running = world.run_one(cpus=4)
    waiting = world.submit(cpus=4)
    accounting = structs.replace(world.settings.accounting, **changes)
    world.settings = structs.replace(world.settings, accounting=accounting)
    world.restart()
    world.settle()
    assert (world.state(waiting), world.reason(waiting)) == ("PENDING", reason)
    world.end(running)
    world.settle()
    assert world.state(waiting) == "PENDING"


def test_changed_account_must_be_one_of_the_user() -> None:
    world = World(associations=accounts_of_alice(bio="root"))
    number = world.submit(held=True)
    body = ev.UpdateJob(jobs=named(number), account="chem")
    assert isinstance(world.request(body), Forbidden)


def test_groups_and_users_of_a_partition_refuse_others_always() -> None:
    staff = AccessList(("staff",), "AccountNotAllowed")
    world = World(
        PartitionRules(name="main", is_default=True, groups=staff),
        PartitionRules(name="admin", root_only=True),
    )
    assert world.submit(groups=("staff", "users")) == 1
    assert isinstance(world.submit(groups=("users",)), Forbidden)
    assert isinstance(world.submit(partitions=("admin",)), Forbidden)
    assert world.submit(OPERATOR, partitions=("admin",)) == 2


def test_partition_that_is_down_accepts_jobs_and_starts_none() -> None:
    world = World(PartitionRules(name="main", is_default=True, state=PartitionState.DOWN))
    number = world.submit()
    world.settle()
    assert (world.state(number), world.reason(number)) == ("PENDING", "PartitionDown")
    world.request(ev.UpdatePartition(PartitionRules(name="main", is_default=True)), OPERATOR)
    world.settle()
    assert world.state(number) == "RUNNING CONFIGURING"


def test_test_only_plans_and_stores_nothing() -> None:
    world = World(nodes=1)
    world.settle()
    before, now = dict(world.rows), world.now.wall
    answer = world.request(submission(test_only=True))
    assert answer == (1, ExpectedStart(now, ("n0",)), "")
    assert world.rows == before
    assert not world.needs_plan
    world.run_one(cpus=4, limit=600)
    answer = world.request(submission(test_only=True))
    assert answer == (2, ExpectedStart(now + 600, ("n0",)), "")


def test_test_only_tells_the_start_of_a_job_as_if_nothing_held_it() -> None:
    world = World(nodes=1)
    world.settle()
    first, now = world.submit(held=True), world.now.wall
    for waits, start in (
        ({"held": True}, now),
        ({"dependency": f"afterok:{first}"}, now),
        ({"eligible": now + 3_600}, now + 3_600),
    ):
        answer = world.request(submission(test_only=True, **waits))
        assert answer.expected == ExpectedStart(start, ("n0",))


def test_test_only_names_the_reason_of_a_job_that_has_no_expected_start() -> None:
    world = World(PartitionRules(name="main", is_default=True, max_seconds=300), nodes=1)
    world.settle()
    answer = world.request(submission(test_only=True, limit=3_600))
    assert (answer.expected, answer.reason) == (None, "PartitionTimeLimit")


def test_expected_start_of_a_waiting_job_is_known() -> None:
    world = World(nodes=1)
    world.run_one(cpus=4, limit=600)
    number = world.submit(cpus=4)
    world.settle()
    expected = world.core.state.expected_starts[number]
    assert expected == ExpectedStart(world.now.wall + 600, ("n0",))
    assert world.reason(number) == "Resources"


def test_account_must_be_one_of_the_user() -> None:
    records = [
        LimitRecord(name="root"),
        LimitRecord(name="bio", parent="root"),
        LimitRecord(name="bio", user="alice", parent="bio"),
    ]
    world = World(associations={(one.name, one.user, one.partition): one for one in records})
    assert world.submit(ALICE) == 1
    assert isinstance(world.submit(BOB), Forbidden)
    assert isinstance(world.submit(ALICE, account="chem"), Forbidden)


def test_ids_begin_again_after_the_last_and_leave_out_known_jobs() -> None:
    world = World(first_job_id=5, max_job_id=7)
    assert [world.submit() for _ in range(3)] == [5, 6, 7]
    world.request(ev.CancelJob(named(6)))
    world.advance(300)
    assert world.submit() == 6


def test_more_jobs_than_the_cluster_keeps_are_refused() -> None:
    world = World(max_job_count=1)
    world.submit()
    assert isinstance(world.submit(), Busy)


# --- rights (W9)


@pytest.mark.parametrize("caller", [ALICE, BOB, OPERATOR, ROOT], ids=lambda caller: caller.name)
@pytest.mark.parametrize(
    "body",
    [
        ev.HoldJob(named(1)),
        ev.ReleaseJob(named(1)),
        ev.CancelJob(named(1)),
        ev.TopJob(named(1)),
        ev.UpdateJob(jobs=named(1), comment="x"),
    ],
    ids=lambda body: type(body).__name__,
)
def test_owner_operators_and_root_change_a_job(caller: ev.Caller, body: Any) -> None:
    world = World()
    world.submit()
    assert isinstance(world.request(body, caller), Forbidden) is (caller is BOB)


@pytest.mark.parametrize("caller", [ALICE, OPERATOR, ROOT], ids=lambda caller: caller.name)
def test_operators_and_root_change_the_cluster(caller: ev.Caller) -> None:
    world = World()
    for body in (
        ev.UpdateNode("n0", NodeEvent.DRAINED, "disk"),
        ev.UpdatePartition(PartitionRules(name="main", is_default=True)),
    ):
        assert isinstance(world.request(body, caller), Forbidden) is (caller is ALICE)


def test_only_an_operator_raises_a_limit_or_sets_a_priority() -> None:
    world = World(PartitionRules(name="main", is_default=True, max_seconds=1_200))
    world.submit(limit=600, held=True)
    assert world.run_one(limit=600) == 2
    for body in (
        ev.UpdateJob(jobs=named(1), limit=1_500),
        ev.UpdateJob(jobs=named(1), limit=None),
        ev.UpdateJob(jobs=named(1), priority=5),
        ev.UpdateJob(jobs=named(2), limit=900),
    ):
        assert isinstance(world.request(body, ALICE), Forbidden)
        assert world.request(body, OPERATOR) is None
        world.request(ev.UpdateJob(jobs=named(1), limit=600), OPERATOR)
    # Up to the limit of its partition, a pending job may ask for more.
    assert world.request(ev.UpdateJob(jobs=named(1), limit=1_200), ALICE) is None
    for number in (1, 2):
        assert world.request(ev.UpdateJob(jobs=named(number), limit=300), ALICE) is None


def test_limits_of_accounting_hold_for_changes_of_a_pending_job() -> None:
    limits = AssociationLimits(wall={LimitKind.MAX_WALL: 5})
    qos = {"short": QosLimits(name="short", limits=limits, deny_on_limit=True)}
    world = World(qos=qos, enforced=Enforced(limits=True))
    number = world.submit(qos="short", limit=240, held=True)
    refused = world.request(ev.UpdateJob(jobs=named(number), limit=600), OPERATOR)
    assert (type(refused), refused.field) == (Forbidden, "limits")
    assert world.job(number).request.limit == 240
    assert world.request(ev.UpdateJob(jobs=named(number), limit=300), ALICE) is None


def test_job_that_is_submitted_once_may_change_at_the_limit_of_submissions() -> None:
    world = limited_world(LimitKind.GRP_SUBMIT_JOBS, 1)
    number = world.submit(account="cells", held=True)
    assert world.request(ev.UpdateJob(jobs=named(number), limit=300), OPERATOR) is None
    assert isinstance(world.submit(account="cells"), Forbidden)


def test_unknown_partition_is_refused_without_the_names_of_private_ones() -> None:
    world = World(
        PartitionRules(name="secret", is_default=True), private_data=frozenset({"partitions"})
    )
    answer = world.submit(partitions=("night",))
    assert isinstance(answer, NotFound)
    assert "secret" not in str(answer)


def test_hold_of_an_operator_is_released_by_operators_only() -> None:
    world = World()
    world.submit()
    world.request(ev.HoldJob(named(1)), OPERATOR)
    assert world.reason(1) == "JobHeldAdmin"
    assert isinstance(world.request(ev.ReleaseJob(named(1)), ALICE), Forbidden)
    world.request(ev.HoldJob(named(1)), ALICE)
    assert world.reason(1) == "JobHeldAdmin"
    world.request(ev.ReleaseJob(named(1)), OPERATOR)
    assert world.reason(1) == "None"


def test_hold_for_the_owner_is_released_by_the_owner() -> None:
    world = World()
    world.submit(held=True)
    world.settle()
    assert (world.state(1), world.reason(1)) == ("PENDING", "JobHeldUser")
    world.request(ev.ReleaseJob(named(1)), ALICE)
    world.request(ev.HoldJob(named(1), by_owner=True), OPERATOR)
    assert world.request(ev.ReleaseJob(named(1)), ALICE) is None


@pytest.mark.parametrize("caller", [ALICE, BOB, OPERATOR, ROOT], ids=lambda caller: caller.name)
def test_private_data_hides_rows_of_others_from_users(caller: ev.Caller) -> None:
    settings = World(private_data=frozenset({"jobs", "nodes"})).settings
    is_operator = caller in (OPERATOR, ROOT)
    assert may_see(settings, caller, "jobs", "alice") is (is_operator or caller is ALICE)
    assert may_see(settings, caller, "nodes") is is_operator
    assert may_see(settings, caller, "usage", "alice")


# --- arrays


def test_array_is_one_record_until_its_tasks_start() -> None:
    world = World(nodes=1)
    world.submit(array="1-6%2")
    assert job_names(world) == ["1_[1-6%2]"]
    world.settle()
    assert job_names(world) == ["1_1", "1_2", "1_[3-6%2]"]
    assert world.reason(1) == "JobArrayTaskLimit"


def test_last_task_keeps_the_id_of_the_array() -> None:
    world = World()
    world.submit(array="3,4")
    world.settle()
    assert {job.number: job.name for job in world.core.state.jobs.values()} == {1: "1_4", 2: "1_3"}


def test_task_that_a_request_names_leaves_its_record() -> None:
    world = World()
    world.submit(array="1-4")
    world.request(ev.HoldJob(named("1_[2,3]")))
    assert job_names(world) == ["1_2", "1_3", "1_[1,4]"]
    world.request(ev.CancelJob(named("1_[1,4]")))
    assert {job.name: job.state.value for job in world.core.state.jobs.values()} == {
        "1_2": "PENDING",
        "1_3": "PENDING",
        "1_[1,4]": "CANCELLED",
    }
    world.request(ev.CancelJob(named("1")))
    world.check_at_rest()


def test_requests_for_an_array_leave_out_the_tasks_that_they_do_not_concern() -> None:
    world = World(nodes=1, cpus=1)
    array = world.submit(array="1-3")
    world.settle()
    world.begin_all()
    world.end(2)
    world.settle()
    world.begin_all()
    states = {job.name: job.state.value for job in world.core.state.jobs.values()}
    assert states == {"1_1": "COMPLETED", "1_2": "RUNNING", "1_[3]": "PENDING"}
    for body in (
        ev.HoldJob(named(array)),
        ev.ReleaseJob(named(array)),
        ev.UpdateJob(jobs=named(array), comment="c"),
        ev.UpdateJob(jobs=named(array), eligible=world.now.wall + 9),
        ev.TopJob(named(array)),
    ):
        assert world.request(body) is None
    comments = {job.name: job.submission.comment for job in world.core.state.jobs.values()}
    assert comments == {"1_1": "", "1_2": "c", "1_[3]": "c"}
    assert world.reason(array) == "BeginTime"
    assert world.request(ev.RequeueJob(named(array))) is None
    restarts = {job.name: job.restarts for job in world.core.state.jobs.values()}
    assert restarts == {"1_1": 1, "1_2": 1, "1_[3]": 0}


def test_task_of_an_array_that_was_cancelled_while_it_waited_is_requeued_alone() -> None:
    world = World()
    array = world.submit(array="1-4")
    world.request(ev.CancelJob(named(array)))
    assert world.request(ev.RequeueJob(named(f"{array}_[2,4]"))) is None
    states = {job.name: job.state.value for job in world.core.state.jobs.values()}
    assert states == {"1_[1,3]": "CANCELLED", "1_2": "PENDING", "1_4": "PENDING"}
    world.restart()
    world.advance(200)
    world.settle()
    world.begin_all()
    for name in ("1_2", "1_4"):
        world.end(next(job.number for job in world.core.state.jobs.values() if job.name == name))
    # The accounting has all four as cancelled, and then the two that ran.
    ends = [(record.state, record.tasks) for record in world.accounting.values()]
    assert ends == [("CANCELLED", (1, 2, 3, 4)), ("COMPLETED", ()), ("COMPLETED", ())]


def test_unknown_task_is_refused_and_splits_nothing() -> None:
    world = World()
    world.submit(array="1-4")
    assert isinstance(world.request(ev.CancelJob(named("1_[2,9]"))), NotFound)
    assert job_names(world) == ["1_[1-4]"]


# --- order and changes


def test_top_moves_a_job_before_those_of_its_user_only() -> None:
    world = World(nodes=1)
    for caller in (ALICE, BOB, ALICE):
        world.submit(caller, cpus=4)
    world.request(ev.TopJob(named(3)), ALICE)
    world.settle()
    assert [world.state(number) for number in (1, 2, 3)] == [
        "PENDING",
        "PENDING",
        "RUNNING CONFIGURING",
    ]


def test_top_of_a_held_or_running_job_is_refused() -> None:
    world = World()
    held, running = world.submit(held=True), world.run_one()
    refused = [world.request(ev.TopJob(named(number))) for number in (held, running)]
    assert [error.field for error in refused] == ["held", "started"]


def test_ended_job_does_not_change() -> None:
    world = World()
    number = world.run_one()
    world.end(number)
    before = world.job(number)
    for body in (
        ev.UpdateJob(jobs=named(number), comment="late"),
        ev.HoldJob(named(number)),
        ev.ReleaseJob(named(number)),
    ):
        refused = world.request(body)
        assert (type(refused), refused.field) == (Conflict, "ended")
    assert world.job(number) == before


def test_running_job_takes_a_new_limit_and_name_and_no_new_partition() -> None:
    world = World()
    number = world.run_one(limit=600)
    refused = world.request(ev.UpdateJob(jobs=named(number), partitions=("main",)))
    assert isinstance(refused, Conflict)
    assert world.request(ev.UpdateJob(jobs=named(number), name="new", comment="c")) is None
    assert world.job(number).submission.name == "new"
    body = ev.RequestMade(99, ALICE, ev.UpdateJob(jobs=named(number), limit=300))
    effects = world.event(body)
    run = world.job(number).run
    assert run is not None
    assert run.started is not None
    assert Send("n0", ChangeLimit(run.run, 300, run.started.mono)) in effects
    world.advance(300)
    assert world.state(number) == "TIMEOUT COMPLETING"


def test_new_name_of_a_job_obeys_the_rule_of_submission() -> None:
    world = World()
    number = world.submit(cpus=1)
    for name in ("a\nb", "", "\u202eb", "x" * 256):
        body = ev.UpdateJob(jobs=named(number), name=name)
        assert isinstance(world.request(body), InvalidInput)
    assert world.request(ev.UpdateJob(jobs=named(number), name="a|b")) is None
    assert world.job(number).submission.name == "a|b"


def test_changed_request_is_what_limits_count() -> None:
    world = World()
    number = world.submit(cpus=1)
    wanted = ResourceRequest(nodes=2, cpus_per_task=3, memory_per_node=1)
    assert world.request(ev.UpdateJob(jobs=named(number), wanted=wanted)) is None
    assert world.job(number).request.tres == {"cpu": 6, "node": 2}
    too_large = ResourceRequest(nodes=3)
    assert isinstance(
        world.request(ev.UpdateJob(jobs=named(number), wanted=too_large)), InvalidInput
    )
    assert world.job(number).request.wanted == wanted


def test_job_that_needs_more_nodes_than_its_partition_gives_a_job_is_refused() -> None:
    world = World(PartitionRules(name="main", is_default=True, max_nodes=1))
    body = submission()
    wanted = ResourceRequest(tasks=5)
    error = world.request(structs.replace(body, job=structs.replace(body.job, wanted=wanted)))
    assert (type(error), error.field) == (InvalidInput, "nodes")
    # With a minimum of its own it waits for a change of the partition.
    number = world.submit(cpus=2, nodes=2)
    world.settle()
    assert world.reason(number) == "PartitionNodeLimit"


# --- nodes, partitions and reservations


def test_changed_weight_and_features_of_a_node_decide_where_jobs_start() -> None:
    world = World()
    assert world.request(ev.UpdateNode("n0", weight=5), OPERATOR) is None
    body = ev.UpdateNode("n1", features=frozenset({"fast"}), comment="new")
    assert isinstance(world.request(body, ALICE), Forbidden)
    assert world.request(body, OPERATOR) is None
    bad = ev.UpdateNode("n1", features=frozenset({"a b"}))
    assert isinstance(world.request(bad, OPERATOR), InvalidInput)
    world.restart()
    number = world.run_one()
    run = world.job(number).run
    assert run is not None
    assert run.allocation.nodes == ("n1",)
    fast = submission()
    fast = structs.replace(
        fast, job=structs.replace(fast.job, wanted=ResourceRequest(constraint="fast"))
    )
    assert world.request(fast).number == number + 1
    world.request(ev.UpdateNode("n1", features=frozenset()), OPERATOR)
    assert isinstance(world.request(fast), InvalidInput)


def test_changed_partition_leaves_its_running_jobs_alone() -> None:
    world = World()
    number = world.run_one(limit=600)
    for rules in (
        PartitionRules(name="main", is_default=True, state=PartitionState.DOWN),
        PartitionRules(name="main", is_default=True, nodes=("n1",)),
        PartitionRules(name="main", is_default=True, max_seconds=60),
    ):
        assert world.request(ev.UpdatePartition(rules), OPERATOR) is None
        world.settle()
        assert world.state(number) == "RUNNING"
    world.advance(599)
    assert world.state(number) == "RUNNING"
    waiting = world.submit(limit=600)
    world.settle()
    assert world.reason(waiting) == "PartitionTimeLimit"


def test_partition_is_deleted_when_no_job_uses_it() -> None:
    world = World()
    night = PartitionRules(name="night")
    world.request(ev.UpdatePartition(night), OPERATOR)
    waiting = world.submit(partitions=("main", "night"), held=True)
    running = world.run_one(partitions=("night",))
    body = ev.DeletePartition("night")
    assert isinstance(world.request(body, ALICE), Forbidden)
    assert isinstance(world.request(body, OPERATOR), Conflict)
    world.request(ev.UpdateJob(jobs=named(waiting), partitions=("main",)))
    world.end_script(world.nodes["n0"], world.job(running).identity("lab"), 0)
    assert isinstance(world.request(body, OPERATOR), Conflict)  # it is being cleaned up
    world.clear(running)
    assert world.request(body, OPERATOR) is None
    world.restart()
    assert isinstance(world.submit(partitions=("night",)), NotFound)
    assert isinstance(world.request(body, OPERATOR), NotFound)
    assert isinstance(world.request(ev.DeletePartition("main"), OPERATOR), Conflict)


@pytest.mark.parametrize("partitions", [("night",), ("night", "main")])
def test_ended_job_is_not_requeued_into_a_deleted_partition(partitions: tuple[str, ...]) -> None:
    world = World()
    world.request(ev.UpdatePartition(PartitionRules(name="night")), OPERATOR)
    number = world.run_one(partitions=partitions)
    world.end(number)
    assert world.request(ev.DeletePartition("night"), OPERATOR) is None
    assert isinstance(world.request(ev.RequeueJob(named(number))), NotFound)
    assert world.state(number) == "COMPLETED"
    # The controller starts only if the jobs that have not ended have their partitions.
    check_stored_jobs(world.settings, stored_state(world.core.state, world.settings))


def test_new_default_partition_replaces_the_other_one() -> None:
    world = World()
    world.request(ev.UpdatePartition(PartitionRules(name="night", is_default=True)), OPERATOR)
    world.restart()
    assert [rules.name for rules in world.core.state.partitions.values() if rules.is_default] == [
        "night"
    ]
    assert world.job(world.submit()).request.partitions == ("night",)


def restarted(world: World, *partitions: PartitionRules, nodes: int = 2) -> Core:
    """Start another controller from the stored rows, with other settings."""
    before = world.core.state.settings
    settings = structs.replace(before, partitions=partitions, nodes=before.nodes[:nodes])
    core = Core(settings)
    core.load(world.stored_rows(), world.now)
    return core


def test_settings_of_a_partition_that_are_new_replace_its_changes_but_not_its_state() -> None:
    main = PartitionRules(name="main", is_default=True, max_seconds=600)
    old, changed = PartitionRules(name="old"), PartitionRules(name="changed")
    world = World(main, old, changed)
    for rules in (main, old, structs.replace(changed, tier=2)):
        world.request(
            ev.UpdatePartition(structs.replace(rules, state=PartitionState.DOWN)), OPERATOR
        )
    new = structs.replace(main, max_seconds=900)
    core = restarted(world, new, changed)
    down = {"state": PartitionState.DOWN}
    assert core.state.partitions == {
        "main": structs.replace(new, **down),
        "changed": structs.replace(changed, tier=2, **down),
    }


def test_created_partition_loses_nodes_that_are_gone_and_its_being_the_default() -> None:
    main = PartitionRules(name="main", is_default=True)
    world = World(main)
    night = PartitionRules(name="night", nodes=("n0", "n1"), is_default=True)
    for rules in (night, PartitionRules(name="far", nodes=("n1",))):
        world.request(ev.UpdatePartition(rules), OPERATOR)
    new = structs.replace(main, max_seconds=900)
    core = restarted(world, new, nodes=1)
    assert core.state.partitions == {
        "main": new,
        "night": PartitionRules(name="night", nodes=("n0",)),
        "far": PartitionRules(name="far", state=PartitionState.INACTIVE),
    }
    assert [*core.state.table.partitions] == ["main", "night", "far"]


def reserve(world: World, begin: int = 0, end: int = 1_000) -> None:
    """Create the reservation `exam`, at seconds from now."""
    now = world.now.wall
    reservation = Reservation(
        name="exam", nodes=("n0",), begin=Instant(now + begin), end=Instant(now + end)
    )
    assert world.request(ev.SetReservation(reservation), OPERATOR) is None


def test_job_whose_reservation_is_deleted_is_held_until_its_release() -> None:
    world = World(nodes=1)
    reserve(world, begin=500)
    number = world.submit(reservation="exam")
    world.request(ev.DeleteReservation("exam"), OPERATOR)
    world.restart()
    world.settle()
    assert (world.state(number), world.reason(number)) == (
        "PENDING RESV_DEL_HOLD",
        "ReservationDeleted",
    )
    assert world.request(ev.ReleaseJob(named(number))) is None
    world.settle()
    assert world.state(number) == "RUNNING CONFIGURING"


def test_job_takes_another_reservation_in_place_of_the_deleted_one() -> None:
    world = World(nodes=1)
    reserve(world, begin=500)
    number = world.submit(reservation="exam")
    world.request(ev.DeleteReservation("exam"), OPERATOR)
    reserve(world)
    assert world.request(ev.UpdateJob(jobs=named(number), reservation="exam")) is None
    world.settle()
    assert world.state(number) == "RUNNING CONFIGURING"


def test_reservation_ends_with_its_time_and_with_the_job_that_runs_in_it() -> None:
    world = World(nodes=1)
    reserve(world)
    running = world.run_one(reservation="exam", cpus=4, limit=5_000)
    assert isinstance(world.request(ev.DeleteReservation("exam"), OPERATOR), Conflict)
    waiting = world.submit(reservation="exam")
    world.advance(1_000)
    assert not world.core.state.reservations
    assert world.state(waiting) == "PENDING RESV_DEL_HOLD"
    assert world.state(running) == "TIMEOUT COMPLETING"
    world.clear(running)
    world.request(ev.RequeueJob(named(running)))
    assert world.reason(running) == "ReservationDeleted"


def test_error_of_the_core_itself_changes_nothing() -> None:
    world = World()
    world.submit()
    before = dict(world.core.state.jobs)
    broken = ev.SetReservation(None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        world.event(ev.RequestMade(9, OPERATOR, broken))
    assert world.core.state.jobs == before


def test_dependencies_of_a_pending_job_can_be_replaced_and_taken_away() -> None:
    world = World()
    for _ in range(2):
        world.submit(held=True)
    on = parse_dependencies("afterany:1", field="dependency")
    assert world.request(ev.UpdateJob(jobs=named(2), dependencies=on)) is None
    world.request(ev.ReleaseJob(named(2)))
    assert world.reason(2) == "Dependency"
    circle = parse_dependencies("afterany:2", field="dependency")
    assert isinstance(world.request(ev.UpdateJob(jobs=named(1), dependencies=circle)), Conflict)
    world.request(ev.UpdateJob(jobs=named(2), dependencies=None))
    world.settle()
    assert world.state(2) == "RUNNING CONFIGURING"


@pytest.mark.parametrize("has_script", [True, False])
def test_signal_reaches_the_script_and_the_steps_but_no_idle_process(has_script: bool) -> None:
    world = World()
    number = world.run_one(nodes=2, cpus=4, script="digest" if has_script else "")
    run = world.job(number).run
    assert run is not None
    steps: dict[str, SignalTarget] = {"n0": "steps", "n1": "steps"}
    targets: dict[SignalTarget, dict[str, SignalTarget]] = {
        "steps": steps,
        "all": {"n0": "all", "n1": "steps"} if has_script else steps,
        "script": {"n0": "script"} if has_script else {},
    }
    for target, nodes in targets.items():
        body = ev.SendSignal(named(number), 10, target)
        effects = world.event(ev.RequestMade(7, ALICE, body))
        assert [effect for effect in effects if isinstance(effect, Send)] == [
            Send(node, SignalJob(run=run.run, number=10, target=of_node))
            for node, of_node in nodes.items()
        ]


def test_line_reaches_the_script_of_a_running_job_only() -> None:
    world = World()
    number = world.run_one(nodes=2, cpus=4)
    run = world.job(number).run
    assert run is not None
    effects = world.event(ev.RequestMade(7, ALICE, ev.SendNotice(named(number), "save now")))
    assert [effect for effect in effects if isinstance(effect, Send)] == [
        Send("n0", NotifyJob(run=run.run, text="save now"))
    ]
    waiting = world.submit(held=True)
    assert isinstance(world.request(ev.SendNotice(named(waiting), "hello")), Conflict)
    assert isinstance(world.request(ev.SendNotice(named(number), "hello"), BOB), Forbidden)


def test_signal_and_line_reach_the_tasks_of_an_array_that_run() -> None:
    world = World(nodes=1)
    array = world.submit(array="1-4", cpus=2)
    world.settle()
    world.begin_all()
    world.end(next(number for number, job in world.core.state.jobs.items() if job.run))
    world.settle()
    world.begin_all()
    jobs = world.core.state.jobs.values()
    assert sorted(job.state.shown for job in jobs) == ["COMPLETED", "PENDING", *2 * ["RUNNING"]]
    runs = {job.run.run for job in jobs if job.run is not None and not job.run.end}
    for body in (ev.SendSignal(named(array), 10), ev.SendNotice(named(array), "save now")):
        effects = world.event(ev.RequestMade(7, ALICE, body))
        sent = [effect.message for effect in effects if isinstance(effect, Send)]
        assert {one.run for one in sent if isinstance(one, SignalJob | NotifyJob)} == runs
        assert Reply(7, None) in effects


def test_signal_for_an_array_of_which_no_task_runs_is_refused() -> None:
    world = World()
    array = world.submit(array="1-3", held=True)
    for text in (f"{array}", f"{array}_2"):
        refusal = world.request(ev.SendSignal(named(text), 10))
        assert isinstance(refusal, Conflict)
        assert refusal.field == "pending"
    assert job_names(world) == [f"{array}_[1-3]"]


def test_change_numbers_move_with_their_table_only() -> None:
    world = World()
    numbers = dict(world.core.state.change_numbers)
    world.submit()
    after = world.core.state.change_numbers
    assert after["jobs"] > numbers["jobs"]
    assert after["nodes"] == numbers["nodes"]
    world.restart()
    restarted = world.core.state.change_numbers["jobs"]
    assert restarted > after["jobs"]
    world.submit()
    assert world.core.state.change_numbers["jobs"] > restarted
