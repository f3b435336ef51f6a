"""Invalid reports of runs, single and in batches, and repeated ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rest.responses import JSON, WHY, refused
from tests.rest.world import AGENT, NOW, SUPERUSER, World, report

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    field=st.sampled_from(
        [
            *report(1),
            "resource",
            "qos",
            "tres",
            "amount",
            "key",
            "comment",
            "restart",
            "name",
            "nodes",
        ]
    ),
    value=anything,
)
def test_report_with_any_value_is_accepted_or_names_the_field(
    shared_world: World, field: str, value: object
) -> None:
    answer = shared_world.ask("POST", "/job", AGENT, json={**report(1), field: value})
    assert answer.status_code in (200, 201, 400, 402, 403, 404, 409)
    if answer.status_code == 400:
        # A start before the submission may be the fault of either.
        other = "submitted" if field == "start" else "billing"
        named = answer.json()["field"].partition(".")[0].partition("[")[0]
        assert named in (field, "billing", other)


# --- reports of runs ---


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"do": "start"}, "do"),
        ({"cluster": "al pha"}, "cluster"),
        ({"job_id": 0}, "job_id"),
        ({"job_id": 2**32}, "job_id"),
        ({"job_id": 1.0}, "job_id"),
        ({"submitted": -1}, "submitted"),
        ({"submitted": 2**53}, "submitted"),
        ({"submitted": "2026-11-21"}, "submitted"),
        ({"restart": 65_536}, "restart"),
        ({"owner_uid": -1}, "owner_uid"),
        ({"owner_uid": "root"}, "owner_uid"),
        ({"account": "chem\n"}, "account"),
        ({"partition": "=cmd"}, "partition"),
        ({"partition": "nosuch"}, "partition"),
        ({"resource": "../x"}, "resource"),
        ({"qos": "a,b"}, "qos"),
        ({"start": 10**12}, "start"),
        ({"time_limit": -1}, "time_limit"),
        ({"time_limit": 10**10}, "time_limit"),
        ({"time_limit": "UNLIMITED"}, "time_limit"),
        ({"time_limit": 0, "amount": 60}, "time_limit"),
        ({"billing": -1}, "billing"),
        ({"billing": "NaN"}, "billing"),
        ({"billing": "Infinity"}, "billing"),
        ({"billing": "1e999999"}, "billing"),
        ({"billing": "1e-999999"}, "billing"),
        ({"billing": "one"}, "billing"),
        ({"billing": True}, "billing"),
        ({"billing": None}, "billing"),
        ({"billing": None, "tres": "cpu"}, "tres"),
        ({"billing": None, "tres": "cpu=1,cpu=2"}, "tres"),
        ({"billing": None, "tres": "bananas=1"}, "tres"),
        ({"billing": None, "tres": "cpu=0,mem=1G"}, "tres"),
        ({"do": "adjust", "billing": None, "tres": "cpu=0"}, "tres"),
        *(
            ({"billing": None, "tres": tres}, "tres")
            for tres in ("node=1", "mem=64G", "billing=5", "gres/gpu=1", "cpu=1.5", "cpu=0.1")
        ),
        ({"do": "adjust", "billing": None, "tres": "gres/gpu:v100=1"}, "tres"),
        ({"billing": 4, "tres": "cpu=0"}, "tres"),
        ({"billing": None, "tres": "x" * 501}, "tres"),
        ({"billing": 10**12, "time_limit": 10**8}, "billing"),
        ({"billing": None, "tres": "cpu=10000000000000000"}, "tres"),
        ({"amount": -1}, "amount"),
        ({"amount": 1.5}, "amount"),
        ({"amount": 10**15 + 1}, "amount"),
        ({"key": "a b"}, "key"),
        ({"key": ""}, "key"),
        ({"key": "k" * 129}, "key"),
        ({"comment": "a\nb"}, "comment"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "\x1b[31m"}, "name"),
        ({"name": "n" * 129}, "name"),
        ({"nodes": 0}, "nodes"),
        ({"nodes": 10**6 + 1}, "nodes"),
        ({"nodes": "n[1-4]"}, "nodes"),
        ({"exit_code": 0}, "exit_code"),
        ({"walltime": 5}, "walltime"),
        ({"end": NOW}, "end"),
    ],
)  # fmt: skip
def test_invalid_field_of_a_report_is_refused(
    shared_world: World, more: dict[str, Any], field: str
) -> None:
    status = 404 if more.get("partition") == "nosuch" else 400
    refused(shared_world, AGENT, "POST", "/job", status, field, json={**report(5), **more})


UNDER_WAY = (
    "RUNNING",
    "PENDING",
    "SUSPENDED",
    "COMPLETING",
    "RESIZING",
    "XYZZY",
    "NODE_FAILED",
    "LAUNCH_FAILED",
)


@pytest.mark.parametrize(
    "state",
    ["", "completed", "CANCELLED by", "CANCELLED by root", "A" * 33, "X\n", None, *UNDER_WAY],
    ids=repr,
)
def test_state_that_is_not_final_is_refused(shared_world: World, state: object) -> None:
    body = report(6, do="complete", end=NOW, elapsed=60, state=state)
    refused(shared_world, AGENT, "POST", "/job", 400, "state", json=body)


def test_running_state_does_not_close_a_run(shared_world: World) -> None:
    assert shared_world.ask("POST", "/job", AGENT, json=report(8)).status_code == 201
    end = report(8, do="complete", end=NOW, elapsed=60, state="RUNNING")
    problem = refused(shared_world, AGENT, "POST", "/job", 400, "state", json=end)
    assert "NODE_FAIL, OUT_OF_MEMORY" in problem["remedy"]
    assert (
        shared_world.ask("POST", "/job", AGENT, json={**end, "state": "NODE_FAIL"}).status_code
        == 201
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("exit_code", 256),
        ("exit_code", "1:0"),
        ("exit_signal", 128),
        ("cpu_seconds", -1),
        ("cpu_seconds", 10**15 + 1),
    ],
)
def test_final_state_is_stored(shared_world: World, field: str, value: object) -> None:
    body = report(6, do="complete", end=NOW, elapsed=60, state="FAILED", **{field: value})
    refused(shared_world, AGENT, "POST", "/job", 400, field, json=body)


@pytest.mark.parametrize("state", ["CANCELLED by 5", "CANCELLED+"])
def test_state_in_the_form_of_sacct_is_accepted(shared_world: World, state: str) -> None:
    answer = shared_world.ask(
        "POST", "/job", AGENT, json=report(6, do="complete", end=NOW, elapsed=60, state=state)
    )
    run = answer.json()["data"]["run"]
    assert (
        shared_world.ask("GET", f"/job/{run}", SUPERUSER).json()["data"]["outcome"] == "CANCELLED"
    )


@pytest.mark.parametrize("price", [{"billing": 1}, {"billing": None, "amount": 60}])
def test_report_with_a_price_needs_no_cpus(world: World, price: dict[str, Any]) -> None:
    body = report(8, time_limit=3_600, tres="node=1,mem=1G", **price)
    answer = world.ask("POST", "/job", AGENT, json=body)
    assert (answer.status_code, answer.json()["data"]["amount"]) == (201, 60)


def test_end_is_accepted_with_any_tres(shared_world: World) -> None:
    body = report(
        7, do="complete", end=NOW, elapsed=60, state="COMPLETED", billing=None, tres="cpu=0,mem=1G"
    )
    assert shared_world.ask("POST", "/job", AGENT, json=body).status_code == 201


def test_end_before_start_is_refused(shared_world: World) -> None:
    body = report(6, do="complete", end=NOW - 3600, elapsed=60, state="COMPLETED")
    refused(shared_world, AGENT, "POST", "/job", 400, "end", json=body)


def test_elapsed_beyond_start_to_end_is_refused(world: World) -> None:
    """Clocks may be corrected during a run, but ten thousand times its length is a mistake that
    would empty the allocation.
    """
    assert world.ask("POST", "/job", AGENT, json=report(6)).status_code == 201
    ended = report(6, do="complete", end=NOW + 60, state="COMPLETED")
    refused(world, AGENT, "POST", "/job", 400, "elapsed", json={**ended, "elapsed": 60 + 3_601})
    assert (
        world.ask("POST", "/job", AGENT, json={**ended, "elapsed": 60 + 3_600}).status_code == 201
    )


@pytest.mark.parametrize(
    ("billing", "amount"),
    [(0.1, 6), ("0.1", 6), (1 / 3, 20), ("0.3333333333333333333333333333", 20), (1e-30, 1), (0, 0)],
)
def test_price_is_exact_and_rounded_up_once(world: World, billing: object, amount: int) -> None:
    """0.1 as a binary fraction is a little more than a tenth, which would cost another minute."""
    assert (
        world.ask("POST", "/job", AGENT, json=report(5, billing=billing)).json()["data"]["amount"]
        == amount
    )


# --- batches ---


@pytest.mark.parametrize(
    "reports",
    [[], [report(1)] * 1_001, None, {}, "x"],
    ids=["none", "1001", "null", "object", "text"],
)
def test_empty_or_too_large_batch_is_refused(shared_world: World, reports: object) -> None:
    refused(shared_world, AGENT, "POST", "/job/bulk", 400, "reports", json={"reports": reports})


def test_batch_of_a_thousand_reports_is_accepted(world: World) -> None:
    rows = world.ask(
        "POST",
        "/job/bulk",
        AGENT,
        json={"reports": [report(5_000 + number) for number in range(1_000)]},
    ).json()["data"]
    assert [row["status"] for row in rows] == [201] * 1_000


def test_invalid_report_affects_no_other(world: World) -> None:
    good, dear = report(21), report(22, amount=10**9)
    reports: list[Any] = [
        good,
        {**good, "job_id": 1.5},
        7,
        report(24, cluster="beta"),
        dear,
        {**good, "account": "nosuch", "job_id": 25},
        good,
    ]
    rows = world.ask("POST", "/job/bulk", AGENT, json={"reports": reports}).json()["data"]
    assert [row["status"] for row in rows] == [201, 400, 400, 403, 402, 404, 200]
    assert [row.get("field") for row in rows] == [
        None,
        "job_id",
        None,
        "cluster",
        "account",
        "account",
        None,
    ]
    assert [rows[place]["refusal"]["reason"] for place in (4, 5)] == [
        "INSUFFICIENT_CREDIT",
        "UNKNOWN_PROJECT",
    ]
    assert rows[6]["granted"]["again"]


def test_batch_that_is_not_json_is_refused(shared_world: World) -> None:
    refused(
        shared_world,
        AGENT,
        "POST",
        "/job/bulk",
        400,
        None,
        content=b'{"reports":[{"do":"hold"},',
        headers=JSON,
    )


# --- repeated requests ---


def test_repeated_report_is_counted_once(world: World) -> None:
    first, second = (
        world.ask("POST", "/job", AGENT, json=report(31, key="31-hold")) for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (201, 200)
    assert {**second.json()["data"], "again": False} == first.json()["data"]


def test_reused_key_is_a_conflict(world: World) -> None:
    world.ask("POST", "/job", AGENT, json=report(31, key="k"))
    problem = refused(world, AGENT, "POST", "/job", 409, "key", json=report(32, key="k"))
    assert (problem["refusal"]["reason"], problem["remedy"]) == (
        "KEY_REUSED",
        "use a new key for a new request",
    )


def test_repeated_deposit_with_a_key_happens_once(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/deposit"
    ask = [
        world.ask(
            "POST", path, SUPERUSER, json={"amount": 60, **WHY}, headers={"Idempotency-Key": "d1"}
        )
        for _ in range(2)
    ]
    assert [answer.status_code for answer in ask] == [201, 200]
    assert ask[0].json()["data"]["available"] == ask[1].json()["data"]["available"]


@pytest.mark.parametrize("key", ["", "a b", "k" * 129])
def test_invalid_key_is_refused(shared_world: World, key: str) -> None:
    path = f"/alloc/{shared_world.own['allocation']}/deposit"
    answer = shared_world.ask(
        "POST", path, SUPERUSER, json={"amount": 60, **WHY}, headers={"Idempotency-Key": key}
    )
    assert answer.status_code == 400
    assert answer.json()["field"] in ("Idempotency-Key", "key")
