"""Invalid values, field by field: status, field and remedy. No entry is written."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.core.time import Instant, iso
from tests.rest.responses import JSON, WHY, refused
from tests.rest.world import AGENT, DAY, MEMBER, NOW, PI, SUPERUSER, World, grant, report

AMOUNTS = [
    0,
    -1,
    -(10**9),
    10**15 + 1,
    10**18,
    10**30,
    1.5,
    1.0,
    1e3,
    "60",
    "1e3",
    None,
    True,
    [1],
    {"su": 1},
]


@pytest.mark.parametrize("amount", AMOUNTS, ids=repr)
@pytest.mark.parametrize("what", ["deposit", "withdraw"])
def test_invalid_amount_is_refused(shared_world: World, what: str, amount: object) -> None:
    path = f"/alloc/{shared_world.own['allocation']}/{what}"
    problem = refused(
        shared_world, SUPERUSER, "POST", path, 400, "amount", json={"amount": amount, **WHY}
    )
    if type(amount) is not int:
        remedy = "send a whole number: no quotes, no fraction, no exponent"
    elif amount < 1:
        remedy = "at least 1 SU-minute"
    else:
        remedy = "at most 1000000000000000 SU-minutes"
    assert problem["remedy"] == remedy


def test_invalid_amount_names_the_accepted_range(shared_world: World) -> None:
    path = f"/alloc/{shared_world.own['allocation']}/deposit"
    problem = refused(
        shared_world, SUPERUSER, "POST", path, 400, "amount", json={"amount": 1.5, **WHY}
    )
    assert (
        problem["detail"]
        == "amount is 1.5, expected a whole number, got a number with a fraction or an exponent"
    )
    assert problem["remedy"] == "send a whole number: no quotes, no fraction, no exponent"
    problem = refused(
        shared_world, SUPERUSER, "POST", path, 400, "amount", json={"amount": -5, **WHY}
    )
    assert (problem["detail"], problem["remedy"]) == (
        "amount is -5, expected a whole number of at least 1",
        "at least 1 SU-minute",
    )


@pytest.mark.parametrize(
    ("amount", "field"),
    [
        *((number, "amount") for number in ("1" + "0" * 400, "1e400", "-0.0", "0x10")),
        *((text, None) for text in ("NaN", "Infinity", "1_000", "01")),  # not JSON
    ],
)
def test_number_that_json_or_the_bank_cannot_hold_is_refused(
    shared_world: World, amount: str, field: str | None
) -> None:
    path = f"/alloc/{shared_world.own['allocation']}/deposit"
    body = f'{{"amount": {amount}, "comment": "x"}}'.encode()
    refused(shared_world, SUPERUSER, "POST", path, 400, field, content=body, headers=JSON)


@pytest.mark.parametrize(
    ("more", "status", "field"),
    [
        ({"start": "2026-02-30"}, 400, "start"),
        ({"start": "tomorrow"}, 400, "start"),
        ({"start": -1}, 400, "start"),
        ({"start": 1.5}, 400, "start"),
        ({"start": 10**12}, 400, "start"),
        ({"start": "-1"}, 400, "start"),
        ({"end": "99999-01-01"}, 400, "end"),
        ({"start": "2026-12-01", "end": "2026-12-01"}, 400, "end"),
        ({"start": "2026-12-01", "end": "2026-01-01"}, 400, "end"),
        ({"resource": "CPU"}, 400, "resource"),
        ({"resource": "cpu\n"}, 400, "resource"),
        ({"category": "=1+1"}, 400, "category"),
        ({"comment": ""}, 400, "comment"),
        ({"comment": "   "}, 400, "comment"),
        ({"comment": "\u00a0"}, 400, "comment"),
        ({"comment": "two\nlines"}, 400, "comment"),
        ({"comment": "bell \x07"}, 400, "comment"),
        ({"comment": "right\u202eto left"}, 400, "comment"),
        ({"comment": "x" * 501}, 400, "comment"),
        ({"credit_limit": -1}, 400, "credit_limit"),
        ({"shared": "yes"}, 400, "shared"),
        ({"project": 1}, 400, "project"),
        ({"account": None}, 400, "project"),
        ({"account": "nosuch"}, 404, "account"),
        ({"account": None, "project": 999_999}, 404, "project"),
        ({"amonut": 5}, 400, "amonut"),
    ],
)
def test_invalid_field_of_a_new_allocation_is_refused(
    shared_world: World, more: dict[str, Any], status: int, field: str
) -> None:
    refused(shared_world, SUPERUSER, "POST", "/alloc", status, field, json=grant(**more))


@pytest.mark.parametrize("missing", ["resource", "category", "start", "end", "comment"])
def test_missing_field_is_named(shared_world: World, missing: str) -> None:
    body = grant()
    del body[missing]
    problem = refused(shared_world, SUPERUSER, "POST", "/alloc", 400, missing, json=body)
    assert problem["detail"] == f"{missing} is missing"


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (NOW, NOW + DAY),
        (NOW - 100 * DAY, NOW + 200 * DAY),
        (NOW - 100 * DAY, NOW - 90 * DAY + 1),
        (NOW + 180 * DAY - 1, NOW + 200 * DAY),
    ],
)
def test_overlapping_period_is_refused(shared_world: World, start: int, end: int) -> None:
    body = grant(resource="cpu", start=str(start), end=str(end))
    problem = refused(shared_world, SUPERUSER, "POST", "/alloc", 409, "end", json=body)
    assert problem["refusal"]["reason"] == "OVERLAP"
    assert "choose another period" in problem["remedy"]


def test_allocation_cannot_be_moved_over_another(shared_world: World) -> None:
    path = f"/alloc/{shared_world.own['allocation']}"
    problem = refused(
        shared_world,
        SUPERUSER,
        "PATCH",
        path,
        409,
        "end",
        json={"end": str(NOW + 100 * DAY), **WHY},
    )
    assert problem["refusal"]["reason"] == "OVERLAP"
    later = f"/alloc/{shared_world.own['later']}"
    problem = refused(
        shared_world, SUPERUSER, "PATCH", later, 409, "start", json={"start": str(NOW), **WHY}
    )
    assert problem["refusal"]["reason"] == "OVERLAP"
    assert (
        f": start is {iso(Instant(NOW))}, and allocation {shared_world.own['allocation']} is for "
        in problem["detail"]
    )


def test_empty_change_of_an_allocation_is_refused(shared_world: World) -> None:
    refused(
        shared_world,
        SUPERUSER,
        "PATCH",
        f"/alloc/{shared_world.own['allocation']}",
        400,
        None,
        json=WHY,
    )


NAMES = [
    "", " ", "a ", "a\nb", "a\r\nSet-Cookie: x", "a\x00b", 'a"b', "a'b", "a,b",
    "=HYPERLINK(1)", "+1", "-rf", "\u202ea", "a" * 256,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("field", ["gname", "account"])
def test_invalid_project_name_is_refused(shared_world: World, field: str, name: str) -> None:
    problem = refused(
        shared_world,
        SUPERUSER,
        "POST",
        "/project",
        400,
        field,
        json={"gname": "fine", "gid": 5, field: name},
    )
    assert "\n" not in problem["detail"]


@pytest.mark.parametrize("gid", [-1, 2**32 - 1, 2**64, 1.0, "5"], ids=repr)
def test_invalid_gid_is_refused(shared_world: World, gid: object) -> None:
    refused(
        shared_world, SUPERUSER, "POST", "/project", 400, "gid", json={"gname": "fine", "gid": gid}
    )


@pytest.mark.parametrize(
    "other", [{"gname": "chem", "gid": 5}, {"gname": "chem2", "gid": 5, "account": "chem"}]
)
def test_existing_project_with_other_content_is_a_conflict(
    shared_world: World, other: dict[str, Any]
) -> None:
    assert (
        refused(
            shared_world,
            SUPERUSER,
            "POST",
            "/project",
            409,
            "account" if "account" in other else "gname",
            json=other,
        )["refusal"]["reason"]
        == "EXISTS"
    )


def test_unknown_parent_is_refused(shared_world: World) -> None:
    problem = refused(
        shared_world,
        SUPERUSER,
        "POST",
        "/project",
        404,
        "parent",
        json={"gname": "fine", "gid": 5, "parent": 999_999},
    )
    assert problem["refusal"]["reason"] == "UNKNOWN_PROJECT"


@pytest.mark.parametrize("role", ["owner", "PI", "", None, 1], ids=repr)
def test_invalid_role_is_refused(shared_world: World, role: object) -> None:
    refused(
        shared_world,
        SUPERUSER,
        "PUT",
        f"/project/{shared_world.own['project']}/member/7",
        400,
        "role",
        json={"role": role},
    )


@pytest.mark.parametrize(
    ("method", "path", "field", "body", "words"),
    [
        ("PUT", "/project/1/member/7", "role", {"role": "boss"}, "coordinator, member, pi"),
        ("PATCH", "/alloc/1", "event", {"event": "explode", **WHY}, "end, freeze, reopen, thaw"),
        ("POST", "/job", "do", report(1, do="dance"), "adjust, complete, hold, predebit"),
    ],
)
def test_unknown_word_is_refused_with_the_accepted_words(
    shared_world: World, method: str, path: str, field: str, body: dict[str, Any], words: str
) -> None:
    uid = AGENT if path == "/job" else SUPERUSER
    assert (
        refused(shared_world, uid, method, path, 400, field, json=body)["remedy"]
        == f"one of {words}"
    )


def test_too_long_idempotency_key_is_refused(shared_world: World) -> None:
    headers = {"Idempotency-Key": "k" * 129}
    refused(
        shared_world,
        SUPERUSER,
        "POST",
        "/alloc/1/deposit",
        400,
        "Idempotency-Key",
        json={"amount": 1, **WHY},
        headers=headers,
    )


@pytest.mark.parametrize(
    "path", ["/alloc/1/deposit", "/alloc/1/withdraw", "/alloc/1/transfer", "/job/{job}/refund"]
)
@pytest.mark.parametrize("comment", ["", " ", "\u2003", "a\x00b"])
def test_blank_reason_is_refused(shared_world: World, path: str, comment: str) -> None:
    body = {"amount": 1, "comment": comment} | ({"to": 2} if path.endswith("transfer") else {})
    refused(
        shared_world,
        SUPERUSER,
        "POST",
        path.format(job=shared_world.own["job"]),
        400,
        "comment",
        json=body,
    )


def test_token_without_a_label_is_refused(shared_world: World) -> None:
    refused(
        shared_world,
        MEMBER,
        "POST",
        "/token",
        400,
        "label",
        json={"label": "  ", "scopes": ["read"]},
    )


@pytest.mark.parametrize(
    ("more", "status", "field"),
    [
        ({"cluster": "nosuch"}, 404, "cluster"),
        ({"partition": "nosuch"}, 404, "partition"),
        ({"tres": ""}, 400, "tres"),
        ({"tres": "gres/gpu=1"}, 400, "tres"),
        ({"tres": "cpu=1.5"}, 400, "tres"),
        ({"tres": "cpu=" + "9" * 18, "time_limit": 10**8}, 400, "tres"),
        ({"time_limit": "UNLIMITED"}, 400, "time_limit"),
        ({"time_limit": "9999999-00"}, 400, "time_limit"),
        ({"time_limit": -1}, 400, "time_limit"),
        ({"time_limit": 1.5}, 400, "time_limit"),
    ],
)
def test_invalid_quote_request_is_refused(
    shared_world: World, more: dict[str, Any], status: int, field: str
) -> None:
    body = {
        "account": "chem",
        "cluster": "alpha",
        "partition": "std",
        "tres": "cpu=1",
        "time_limit": 60,
        **more,
    }
    refused(shared_world, PI, "POST", "/quote", status, field, json=body)
