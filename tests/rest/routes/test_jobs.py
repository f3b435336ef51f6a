"""Runs from their hold to their charge, and lists of runs."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from fairbank.core.final_state import FinalState
from fairbank.core.time import Instant, iso
from tests.rest.counting_store import CountingStore
from tests.rest.responses import WHY, data, ids_of
from tests.rest.world import (
    AGENT,
    DAY,
    LATE_REPORTS_POLICY,
    MEMBER,
    NOW,
    SUPERUSER,
    World,
    create_world,
    report,
)


def test_run_is_held_and_charged(world: World) -> None:
    held = world.ask(
        "POST",
        "/job",
        AGENT,
        json=report(42, billing=None, tres="cpu=2, mem=1G,node=1", name="relax w64", qos="high"),
    )
    assert held.json()["data"]["amount"] == 120  # two CPUs for an hour
    longer = world.ask(
        "POST", "/job", AGENT, json=report(42, do="adjust", billing=2, time_limit=7_200)
    )
    assert (longer.status_code, longer.json()["data"]["amount"]) == (201, 120)
    facts = {"exit_code": 2, "cpu_seconds": 1_200}
    end = report(
        42,
        do="complete",
        billing=2,
        time_limit=0,
        end=NOW + 1_800,
        elapsed=1_800,
        state="FAILED",
        **facts,
    )
    ended = world.ask("POST", "/job", AGENT, json=end)
    assert (ended.json()["data"]["amount"], ended.json()["data"]["written_off"]) == (60, 0)
    number = held.json()["data"]["run"]
    row = data(world, f"/job/{number}", MEMBER)
    assert row == {
        "id": number, "cluster": "alpha", "job_id": 42, "submitted": iso(NOW), "restart": 0,
        "project": 1, "account": "chem",
        "allocation": world.own["allocation"], "resource": "cpu", "owner_uid": MEMBER,
        "partition": "std",
        "state": "charged", "status": "completed",
        "held": 0, "charged": 60, "refunded": 0, "written_off": 0, "start": iso(NOW),
        "until": row["until"], "ended": iso(NOW + 1_800),
        "outcome": "FAILED", "elapsed": 1_800, "set_by": ended.json()["data"]["entry"],
        "name": "relax w64", "qos": "high", "nodes": 1, "cpus": 2,
        "tres": "cpu=2,mem=1G,node=1", "time_limit": 7_200,
        "exit_code": 2, "exit_signal": 0, "cpu_seconds": 1_200, "cpu_given": 3_600, "wasted": 40,
            "occupied": None,
    }  # fmt: skip


def test_each_piece_of_a_resized_run_is_held_and_charged_once(world: World) -> None:
    """Half an hour with eight processors, then one: the hold and the charge follow."""
    held = world.ask("POST", "/job", AGENT, json=report(94, billing=8)).json()["data"]
    assert held["amount"] == 480
    pieces = [{"seconds": 1_800, "billing": "8"}]
    smaller = report(94, do="adjust", billing=1, pieces=pieces)
    assert world.ask("POST", "/job", AGENT, json=smaller).json()["data"]["amount"] == -210
    end = report(
        94, do="complete", billing=1, pieces=pieces,
        end=NOW + 2_400, elapsed=2_400, state="COMPLETED",
    )  # fmt: skip
    assert world.ask("POST", "/job", AGENT, json=end).json()["data"]["amount"] == 240 + 10


def test_hours_of_a_resized_run_are_unknown_unless_its_size_is_the_same(world: World) -> None:
    """Its last size for the whole time would be wrong; a change of memory alone keeps the CPUs."""
    sizes = {
        101: ("cpu=8,gres/gpu=4", "cpu=2,gres/gpu=1", (None, 0, 0)),
        102: ("cpu=2,mem=1G", "cpu=2,mem=2G", (2, 7_200, 0)),
        103: (None, "cpu=2,gres/gpu=1", (None, 0, 0)),  # the agent knows only the billing
    }
    for number, (before, last, (cpus, core, gpu)) in sizes.items():
        started = report(number, billing=8, tres=before or "cpu=8,gres/gpu=4")
        world.ask("POST", "/job", AGENT, json=started)
        end = report(
            number, do="complete", billing=2, tres=last, end=NOW + 3_600, elapsed=3_600,
            state="COMPLETED", cpu_seconds=60,
            pieces=[{"seconds": 1_800, "billing": "8"} | ({"tres": before} if before else {})],
        )  # fmt: skip
        answer = world.ask("POST", "/job", AGENT, json=end).json()["data"]
        assert answer["charged"] == 240 + 60
        (row,) = world.ask("GET", f"/job?job_id={number}", SUPERUSER).json()["data"]
        assert (row["cpus"], row["cpu_given"]) == (cpus, core or None)
        usage = world.ask("GET", f"/usage?by=job&until={NOW + 86_400}", SUPERUSER).json()["data"]
        (row,) = (row for row in usage if row["group"] == f"alpha/{number}")
        assert (row["core_seconds"], row["gpu_seconds"], row["cpu_given"]) == (core, gpu, core)


def test_free_states_of_debitsuccessfulwc_charge_a_job_beyond_its_limit() -> None:
    """Maui counts a job that exceeded its time limit as successful, so TIMEOUT is not free."""
    free = frozenset(get_args(FinalState)) - {"COMPLETED", "TIMEOUT"}
    policy = msgspec.structs.replace(LATE_REPORTS_POLICY, free_states=free)
    with create_world(policy=policy) as world:
        charges = {}
        for number, state in enumerate(("COMPLETED", "TIMEOUT", "CANCELLED", "FAILED"), 96):
            world.ask("POST", "/job", AGENT, json=report(number))
            end = report(
                number, do="complete", end=NOW + 3_600, elapsed=3_600, state=state, time_limit=0
            )
            answer = world.ask("POST", "/job", AGENT, json=end).json()["data"]
            charges[state] = answer.get("charged", 0)
    assert charges == {"COMPLETED": 60, "TIMEOUT": 60, "CANCELLED": 0, "FAILED": 0}


HADM = {"job_id": 300, "owner_uid": MEMBER, "amount": 600, "resource": "cpu", "project": "chem"}


def test_hadm_predebit_is_held_and_completed(world: World) -> None:
    """HADM's five fields, without `do`. Each repeated request gets its first answer."""
    held = world.ask("POST", "/job", AGENT, json=HADM)
    assert (held.status_code, held.json()["data"]["held"]) == (201, 600)
    row = data(world, f"/job/{held.json()['data']['run']}", MEMBER)
    grace = LATE_REPORTS_POLICY.hold_grace_seconds
    # The bank knows no time limit, and keeps the hold for 30 days and its grace time.
    assert (row["time_limit"], row["until"]) == (None, iso(NOW + 30 * DAY + grace))
    world.clock.at = Instant(NOW + 1_800)
    again = world.ask("POST", "/job", AGENT, json={**HADM, "do": "predebit"})
    assert (again.status_code, again.json()["data"]["run"]) == (200, held.json()["data"]["run"])
    end = {**HADM, "amount": 250, "status": "completed"}
    ended = world.ask("POST", "/job", AGENT, json=end)
    assert (ended.status_code, ended.json()["data"]["charged"]) == (201, 250)
    world.clock.at = Instant(NOW + 1_860)
    assert world.ask("POST", "/job", AGENT, json=end).json()["data"]["again"] is True
    row = data(world, f"/job/{held.json()['data']['run']}", MEMBER)
    figures = ("cluster", "account", "status", "outcome", "held", "charged", "elapsed")
    assert [row[name] for name in figures] == [
        "alpha", "chem", "completed", "COMPLETED", 0, 250, 1_800,
    ]  # fmt: skip
    # The number is used again, and this job costs nothing.
    assert world.ask("POST", "/job", AGENT, json=HADM).json()["data"]["held"] == 600
    nothing = {**HADM, "amount": 0, "status": "completed"}
    assert world.ask("POST", "/job", AGENT, json=nothing).json()["data"]["released"] == 600


def test_jobs_are_selected_by_the_status_of_hadm(world: World) -> None:
    """A job is executing as long as the bank holds credit for it, then completed."""
    for job in (42, 43):
        assert world.ask("POST", "/job", AGENT, json=report(job)).status_code == 201
    end = report(43, do="complete", time_limit=0, end=NOW + 60, elapsed=60, state="COMPLETED")
    world.clock.at = Instant(NOW + 60)
    assert world.ask("POST", "/job", AGENT, json=end).status_code == 201
    for status, job in (("executing", 42), ("completed", 43)):
        rows = data(world, f"/job?status={status}")
        assert {row["status"] for row in rows} == {status}
        assert {42, 43}.intersection(row["job_id"] for row in rows) == {job}
    problem = world.ask("GET", "/job?status=running", SUPERUSER)
    assert (problem.status_code, problem.json()["field"]) == (400, "status")
    assert all(status in problem.text for status in ("executing", "completed"))


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"amount": -1}, 400, "amount"),
        ({"amount": None}, 400, "amount"),
        ({"status": "running"}, 400, "status"),
        ({"project": "nobody"}, 404, "project"),
        ({"resource": "CPU"}, 400, "resource"),
        ({"cluster": "beta"}, 403, "cluster"),
        ({"limit": 5}, 400, "limit"),
        ({"owner_uid": 65_534}, 400, "owner_uid"),  # as measured use, no job of `jobs`
        ({"amount": 10**12}, 402, "project"),
    ],
)
def test_invalid_predebit_is_refused(
    world: World, changes: dict[str, object], status: int, field: str
) -> None:
    answer = world.ask("POST", "/job", AGENT, json={**HADM, **changes})
    assert (answer.status_code, answer.json()["field"]) == (status, field)


@pytest.mark.parametrize("project", [1, None, ["chem"]])
def test_project_of_a_predebit_is_an_account(world: World, project: object) -> None:
    problem = world.ask("POST", "/job", AGENT, json={**HADM, "project": project})
    assert (problem.status_code, problem.json()["field"]) == (400, "project")
    assert problem.json()["remedy"] == (
        'send the account of the project, such as "chem_qmc", not its number'
    )


@pytest.mark.parametrize("field", HADM)
def test_missing_field_of_a_predebit_is_named(world: World, field: str) -> None:
    body = {name: value for name, value in HADM.items() if name != field}
    answer = world.ask("POST", "/job", AGENT, json=body)
    assert (answer.status_code, answer.json()["detail"]) == (400, f"{field} is missing")


def test_piece_without_a_price_is_refused(world: World) -> None:
    body = report(95, pieces=[{"seconds": 60}])
    answer = world.ask("POST", "/job", AGENT, json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, "billing")


def test_end_with_too_many_cpu_seconds_is_charged(world: World) -> None:
    """The report is sent alone and in a batch; a repeated report gets the same answer."""
    for number in (91, 92):
        world.ask("POST", "/job", AGENT, json=report(number, billing=None, tres="cpu=2"))
    ends = [
        report(
            number,
            do="complete",
            billing=2,
            time_limit=0,
            end=NOW + 60,
            elapsed=60,
            state="COMPLETED",
            cpu_seconds=9_000,
        )
        for number in (91, 92)
    ]
    alone = [world.ask("POST", "/job", AGENT, json=ends[0]).json()["data"] for _ in range(2)]
    (of_many,) = world.ask("POST", "/job/bulk", AGENT, json={"reports": ends[1:]}).json()["data"]
    for granted in (*alone, of_many["granted"]):
        assert (granted["amount"], granted["cpu_counted"]) == (2, 120)
    assert data(world, f"/job/{alone[0]['run']}")["cpu_seconds"] == 9_000


def test_end_that_contradicts_its_hold_is_refused(world: World) -> None:
    """The problem names the field. A report with its own price is not priced by its partition."""
    started = report(93, partition="big", resource="cpu")
    assert world.ask("POST", "/job", AGENT, json=started).status_code == 201
    end = started | {
        "do": "complete",
        "time_limit": 0,
        "end": NOW + 60,
        "elapsed": 60,
        "state": "COMPLETED",
    }
    priced = {"billing": None, "tres": "cpu=2", "partition": "std"}
    for field, changed in (
        ("owner_uid", {"owner_uid": MEMBER + 1}),
        ("account", {"account": "nobodys"}),
        ("partition", priced),
    ):
        problem = world.ask("POST", "/job", AGENT, json=end | changed).json()
        assert (problem["status"], problem["field"], problem["refusal"]["reason"]) == (
            409,
            field,
            "REPORT_MISMATCH",
        )
    assert (
        world.ask("POST", "/job", AGENT, json=end | {"partition": "std"}).json()["data"]["amount"]
        == 1
    )


def test_limit_change_that_contradicts_its_hold_is_refused(world: World) -> None:
    """The rule for an end holds for a limit change too."""
    started = report(94, partition="big", resource="cpu")
    assert world.ask("POST", "/job", AGENT, json=started).status_code == 201
    longer = started | {"do": "adjust", "time_limit": 7_200}
    priced = {"billing": None, "tres": "cpu=2", "partition": "std"}
    for field, changed in (
        ("owner_uid", {"owner_uid": MEMBER + 1}),
        ("account", {"account": "nobodys"}),
        ("partition", priced),
    ):
        problem = world.ask("POST", "/job", AGENT, json=longer | changed).json()
        assert (problem["status"], problem["field"], problem["refusal"]["reason"]) == (
            409,
            field,
            "REPORT_MISMATCH",
        )
    assert world.ask("POST", "/job", AGENT, json=longer | {"partition": "std"}).status_code == 201


def test_unknown_values_of_a_run_are_null(shared_world: World) -> None:
    row = data(shared_world, f"/job/{shared_world.own['job']}")
    unknown = (
        "name",
        "qos",
        "nodes",
        "cpus",
        "tres",
        "time_limit",
        "exit_code",
        "exit_signal",
        "cpu_seconds",
    )
    assert [row[field] for field in unknown] == [None] * 9


def test_details_in_a_batch_are_stored(world: World) -> None:
    reports = [report(number, nodes=number, name=f"step-{number}") for number in (61, 62)]
    assert [
        row["status"]
        for row in world.ask("POST", "/job/bulk", AGENT, json={"reports": reports}).json()["data"]
    ] == [201, 201]
    assert {(row["name"], row["nodes"]) for row in data(world, "/job?limit=2")} == {
        ("step-61", 61),
        ("step-62", 62),
    }


def test_node_failure_costs_nothing(world: World) -> None:
    world.ask("POST", "/job", AGENT, json=report(42))
    ended = world.ask(
        "POST",
        "/job",
        AGENT,
        json=report(42, do="complete", end=NOW + 60, elapsed=60, state="NODE_FAIL"),
    )
    assert data(world, f"/job/{ended.json()['data']['run']}")["state"] == "released"


def test_end_without_hold_is_charged(world: World) -> None:
    ended = world.ask(
        "POST",
        "/job",
        AGENT,
        json=report(42, do="complete", end=NOW + 600, elapsed=600, state="COMPLETED"),
    )
    assert (ended.status_code, ended.json()["data"]["amount"]) == (201, 10)


def test_runs_are_filtered(world: World) -> None:
    number = world.ask("POST", "/job", AGENT, json=report(42)).json()["data"]["run"]
    for query in (
        "job_id=42",
        f"since={NOW}&state=held&limit=1",
        "cluster=alpha&partition=std",
        f"owner_uid={MEMBER}&limit=1",
    ):
        assert ids_of(data(world, f"/job?{query}"))[0] == number
    for query in (
        "job_id=41",
        "state=lapsed",
        "cluster=beta",
        "partition=x",
        f"until={NOW - DAY}",
        "account=bio",
        "allocation=99",
    ):
        assert data(world, f"/job?{query}") == []
    newest, oldest = ids_of(data(world, "/job")), ids_of(data(world, "/job?order=oldest"))
    assert newest == oldest[::-1]
    assert newest[0] == number


@pytest.mark.parametrize("path", ["/job", "/failure"])
@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("account=chem", True),
        ("gname=chem", True),
        ("project=1", True),
        ("resource=cpu", True),
        ("active-at=now", True),
        (f"active-at={NOW}&category=research&resource=cpu&gname=chem&cluster=alpha", True),
        ("gid=1", False),
        ("gname=nosuch", False),
        ("project=2", False),
        ("resource=gpu", False),
        ("category=startup", False),
        (f"active-at={NOW + 100 * DAY}", False),
        ("cluster=beta", False),
        ("job_id=999", False),
    ],
)
def test_runs_and_refusals_are_filtered_by_project_and_allocation(
    shared_world: World, path: str, query: str, fits: bool
) -> None:
    assert bool(data(shared_world, f"{path}?{query}")) == fits


@pytest.mark.parametrize("path", ["/alloc", "/job", "/failure", "/balance", "/activity"])
def test_lists_are_filtered_by_gid(shared_world: World, path: str) -> None:
    (project,) = data(shared_world, "/project?account=chem")
    assert (
        data(shared_world, f"{path}?gid={project['gid']}")
        == data(shared_world, f"{path}?account=chem")
        != []
    )


def test_charge_is_refunded(world: World) -> None:
    path = f"/job/{world.own['job']}/refund"
    assert world.ask("POST", path, SUPERUSER, json={"amount": 10_000, **WHY}).status_code == 201
    assert world.ask("POST", path, SUPERUSER, json=WHY).json()["data"]["amount"] == 20_000
    row = data(world, f"/job/{world.own['job']}")
    assert (row["charged"], row["refunded"]) == (30_000, 30_000)
    assert (
        world.ask("POST", path, SUPERUSER, json=WHY).json()["refusal"]["reason"]
        == "NOTHING_TO_REFUND"
    )


def test_reports_of_cached_accounts_read_the_store_once_in_five_seconds() -> None:
    store = CountingStore()
    with create_world(store) as world:
        before = store.reads
        for job in (1, 2, 3):
            assert world.ask("POST", "/job", AGENT, json=report(job)).status_code == 201
        assert store.reads == before
        world.ticks.at += 5
        for job in (4, 5):
            assert world.ask("POST", "/job", AGENT, json=report(job)).status_code == 201
        assert store.reads == before + 1


def test_batch_of_unknown_accounts_reads_the_store_once() -> None:
    store = CountingStore()
    with create_world(store) as world:
        before = store.reads
        world.ticks.at += 1
        reports = [report(job, account=f"no{job}") for job in range(1, 6)]
        response = world.ask("POST", "/job/bulk", AGENT, json={"reports": reports})
        assert [row["status"] for row in response.json()["data"]] == [404] * 5
        assert store.reads == before + 1
