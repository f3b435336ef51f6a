"""What bad input gets: a status, the field, what to do; and not a line in any book."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.rest.app import document
from fairbank.rest.asking import BODY_MAX
from tests.rest.operations import operations
from tests.rest.refused import JSON, WHY, refused
from tests.rest.world import AGENT, DAY, MEMBER, NOW, PI, SUPERUSER, World, grant, report

AMOUNTS = [0, -1, -(10**9), 10**15 + 1, 10**18, 10**30, 1.5, 1.0, 1e3, "60", "1e3", None, True, [1], {"su": 1}]


@pytest.mark.parametrize("amount", AMOUNTS, ids=repr)
@pytest.mark.parametrize("what", ["deposit", "withdraw"])
def test_amounts(old_world: World, what: str, amount: object) -> None:
    path = f"/alloc/{old_world.own['allocation']}/{what}"
    problem = refused(old_world, SUPERUSER, "POST", path, 400, "amount", json={"amount": amount, **WHY})
    assert problem["remedy"]


def test_an_amount_says_what_was_expected(old_world: World) -> None:
    path = f"/alloc/{old_world.own['allocation']}/deposit"
    problem = refused(old_world, SUPERUSER, "POST", path, 400, "amount", json={"amount": 1.5, **WHY})
    assert problem["detail"] == "amount: expected a whole number, got a number with a fraction"
    assert problem["remedy"] == "send a whole number: no quotes, no fraction, no exponent"
    problem = refused(old_world, SUPERUSER, "POST", path, 400, "amount", json={"amount": -5, **WHY})
    assert (problem["detail"], problem["remedy"]) == ("amount: expected a whole number >= 1", "at least 1")


@pytest.mark.parametrize("amount", ["1" + "0" * 400, "1e400", "-0.0", "NaN", "Infinity", "0x10", "1_000", "01"])
def test_numbers_that_are_no_amounts_in_json(old_world: World, amount: str) -> None:
    path = f"/alloc/{old_world.own['allocation']}/deposit"
    body = f'{{"amount": {amount}, "comment": "x"}}'.encode()
    answer = old_world.ask("POST", path, SUPERUSER, content=body, headers=JSON)
    assert answer.status_code == 400


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
def test_a_new_allocation(old_world: World, more: dict[str, Any], status: int, field: str) -> None:
    refused(old_world, SUPERUSER, "POST", "/alloc", status, field, json=grant(**more))


@pytest.mark.parametrize("missing", ["resource", "category", "start", "end", "comment"])
def test_a_missing_field_is_named(old_world: World, missing: str) -> None:
    body = grant()
    del body[missing]
    problem = refused(old_world, SUPERUSER, "POST", "/alloc", 400, missing, json=body)
    assert problem["detail"] == f"{missing} is missing"


@pytest.mark.parametrize(
    ("start", "end"),
    [(NOW, NOW + DAY), (NOW - 100 * DAY, NOW + 200 * DAY), (NOW - 100 * DAY, NOW - 90 * DAY + 1), (NOW + 180 * DAY - 1, NOW + 200 * DAY)],
)
def test_periods_that_overlap(old_world: World, start: int, end: int) -> None:
    body = grant(resource="cpu", start=str(start), end=str(end))
    problem = refused(old_world, SUPERUSER, "POST", "/alloc", 409, None, json=body)
    assert problem["refusal"]["reason"] == "OVERLAP"
    assert "choose another period" in problem["remedy"]


def test_an_allocation_cannot_be_moved_over_its_neighbour(old_world: World) -> None:
    path = f"/alloc/{old_world.own['allocation']}"
    problem = refused(old_world, SUPERUSER, "PATCH", path, 409, None, json={"end": str(NOW + 100 * DAY), **WHY})
    assert problem["refusal"]["reason"] == "OVERLAP"


def test_a_change_that_changes_nothing(old_world: World) -> None:
    refused(old_world, SUPERUSER, "PATCH", f"/alloc/{old_world.own['allocation']}", 400, None, json=WHY)


NAMES = [
    "", " ", "a b", "a\nb", "a\r\nSet-Cookie: x", "a\x00b", 'a"b', "a'b", "a;DROP TABLE project", "=HYPERLINK(1)", "+1", "-rf", "@x", "1a",
    "../etc", "a/b", "é", "\u202ea", "\u0430", "a" * 65,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("field", ["gname", "account"])
def test_names_of_projects(old_world: World, field: str, name: str) -> None:
    problem = refused(old_world, SUPERUSER, "POST", "/project", 400, field, json={"gname": "fine", "gid": 5, field: name})
    assert "\n" not in problem["detail"]


@pytest.mark.parametrize("gid", [-1, 2**32 - 1, 2**64, 1.0, "5"], ids=repr)
def test_group_numbers(old_world: World, gid: object) -> None:
    refused(old_world, SUPERUSER, "POST", "/project", 400, "gid", json={"gname": "fine", "gid": gid})


@pytest.mark.parametrize("other", [{"gname": "chem", "gid": 5}, {"gname": "chem2", "gid": 5, "account": "chem"}])
def test_a_project_that_is_there_with_other_content(old_world: World, other: dict[str, Any]) -> None:
    assert refused(old_world, SUPERUSER, "POST", "/project", 409, None, json=other)["refusal"]["reason"] == "EXISTS"


def test_an_unknown_parent(old_world: World) -> None:
    problem = refused(old_world, SUPERUSER, "POST", "/project", 404, None, json={"gname": "fine", "gid": 5, "parent": 999_999})
    assert problem["refusal"]["reason"] == "UNKNOWN_PROJECT"


@pytest.mark.parametrize("role", ["owner", "PI", "", None, 1], ids=repr)
def test_roles(old_world: World, role: object) -> None:
    refused(old_world, SUPERUSER, "PUT", f"/project/{old_world.own['project']}/member/7", 400, "role", json={"role": role})


@pytest.mark.parametrize(
    ("method", "path", "field", "body", "words"),
    [
        ("PUT", "/project/1/member/7", "role", {"role": "boss"}, "coordinator, member, pi"),
        ("PATCH", "/alloc/1", "event", {"event": "explode", **WHY}, "end, freeze, reopen, thaw"),
        ("POST", "/job", "do", report(1, do="dance"), "adjust, complete, hold"),
    ],
)
def test_words_in_bodies(old_world: World, method: str, path: str, field: str, body: dict[str, Any], words: str) -> None:
    uid = AGENT if path == "/job" else SUPERUSER
    assert refused(old_world, uid, method, path, 400, field, json=body)["remedy"] == f"one of {words}"


def test_a_key_that_is_too_long(old_world: World) -> None:
    headers = {"Idempotency-Key": "k" * 129}
    refused(old_world, SUPERUSER, "POST", "/alloc/1/deposit", 400, "Idempotency-Key", json={"amount": 1, **WHY}, headers=headers)


@pytest.mark.parametrize("path", ["/alloc/1/deposit", "/alloc/1/withdraw", "/alloc/1/transfer", "/job/{job}/refund"])
@pytest.mark.parametrize("comment", ["", " ", "\u2003", "a\x00b"])
def test_where_a_reason_is_demanded_blanks_are_none(old_world: World, path: str, comment: str) -> None:
    body = {"amount": 1, "comment": comment} | ({"to": 2} if path.endswith("transfer") else {})
    refused(old_world, SUPERUSER, "POST", path.format(job=old_world.own["job"]), 400, "comment", json=body)


def test_a_token_is_labelled(old_world: World) -> None:
    refused(old_world, MEMBER, "POST", "/token", 400, "label", json={"label": "  ", "scopes": ["read"]})


# --- bodies ---

TWICE = {
    "the same": (b'{"amount":5,"comment":"x","amount":5}', "amount"),
    "another": (b'{"amount":5,"amount":7,"comment":"x"}', "amount"),
    "escaped": (b'{"amount":5,"am\\u006funt":7,"comment":"x"}', "amount"),
    "with blanks": (b'{ "comment" : "x" , "amount" : 5 , "comment"\n: "y" }', "comment"),
    "beside colons": (b'{"comment":"a: b: c","amount":5,"amount":7}', "amount"),
}


@pytest.mark.parametrize(("body", "field"), TWICE.values(), ids=TWICE.keys())
def test_a_key_that_stands_twice(old_world: World, body: bytes, field: str) -> None:
    path = f"/alloc/{old_world.own['allocation']}/deposit"
    problem = refused(old_world, SUPERUSER, "POST", path, 400, field, content=body, headers=JSON)
    assert (problem["detail"], problem["remedy"]) == (f"'{field}' stands there twice", "send it once")


@pytest.mark.parametrize("body", [b'{"do":"hold","do":"dance"}', b'{"do":1,"do":"hold"}', b'{"do":"hold","do":"complete","x":{}}'])
def test_a_key_that_stands_twice_is_told_before_what_is_wrong_with_its_values(old_world: World, body: bytes) -> None:
    problem = refused(old_world, AGENT, "POST", "/job", 400, "do", content=body, headers=JSON)
    assert (problem["detail"], problem["remedy"]) == ("'do' stands there twice", "send it once")


_JOB = {"account": "chem", "partition": "std", "tres": "cpu=1", "time_limit": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "detail"),
    [
        ("POST", "/job/{job}/refund", {"amount": "5", **WHY}, "amount: expected a whole number, or nothing, got text"),
        ("PUT", "/alloc/{allocation}/cap/7", {"cap": 1.5}, "cap: expected a whole number, or nothing, got a number with a fraction"),
        ("PATCH", "/alloc/{allocation}", {"shared": 1, **WHY}, "shared: expected true or false, or nothing, got a whole number"),
        ("POST", "/quote", _JOB, "time_limit: expected a whole number or text, got a list"),
        ("POST", "/token", {"label": "x", "scopes": []}, "scopes: expected a list, at least 1 long"),
        ("POST", "/project", {"gname": "x" * 65, "gid": 5}, "gname: expected text, at most 64 long"),
    ],
)
def test_what_was_expected_is_told_in_peoples_words(old_world: World, method: str, path: str, body: dict[str, Any], detail: str) -> None:
    field = detail.partition(":")[0]
    problem = refused(old_world, SUPERUSER, method, path.format(**old_world.own), 400, field, json=body)
    assert problem["detail"] == detail


def test_colons_and_quotes_in_a_text_are_no_keys(world: World) -> None:
    body = {"amount": 5, "comment": 'at 07:30: "amount": 7, \\"amount\\": 9'}
    assert world.ask("POST", f"/alloc/{world.own['allocation']}/deposit", SUPERUSER, json=body).status_code == 201


def test_a_key_that_stands_twice_in_one_of_many_reports(world: World) -> None:
    good, twice = json.dumps(report(71, comment='"reports": {')), json.dumps(report(72))[:-1] + ', "amount": 1, "amount": 2}'
    answer = world.ask("POST", "/job/bulk", AGENT, content=f'{{"reports":[{good},{twice}]}}'.encode(), headers=JSON)
    assert [(each["status"], each.get("field")) for each in answer.json()["data"]] == [(201, None), (400, "amount")]
    again = f'{{"reports":[{good}],"reports":[{good}]}}'.encode()
    refused(world, AGENT, "POST", "/job/bulk", 400, "reports", content=again, headers=JSON)


BROKEN = {
    "nothing": (b"", None),
    "truncated": (b'{"amount": 5, "comm', None),
    "two": (b'{"amount":5,"comment":"x"}{"amount":5,"comment":"x"}', None),
    "not UTF-8": (b'{"amount":5,"comment":"\xff"}', None),
    "a lone surrogate": (b'{"amount":5,"comment":"\\ud800"}', None),
    "UTF-16": ('{"amount":5,"comment":"x"}'.encode("utf-16"), None),
    "deep": (b'{"amount":' + b"[" * 100_000, "amount"),
    "deep and closed": (b"[" * 50_000 + b"]" * 50_000, None),
    "a list": (b"[]", None),
    "a string": (b'"x"', None),
    "null": (b"null", None),
    "a comment": (b'{"amount":5,/**/"comment":"x"}', None),
    "NaN": (b'{"amount":NaN,"comment":"x"}', None),
    "a form": (b"amount=5&comment=x", None),
}


@pytest.mark.parametrize(("body", "field"), BROKEN.values(), ids=BROKEN.keys())
def test_bodies_that_are_no_json_object(old_world: World, body: bytes, field: str | None) -> None:
    path = f"/alloc/{old_world.own['allocation']}/deposit"
    assert refused(old_world, SUPERUSER, "POST", path, 400, field, content=body, headers=JSON)["remedy"]


@pytest.mark.parametrize(
    "said", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"]
)
def test_bodies_that_do_not_say_they_are_json(old_world: World, said: str | None) -> None:
    headers = {} if said is None else {"content-type": said}
    path = f"/alloc/{old_world.own['allocation']}/deposit"
    refused(old_world, SUPERUSER, "POST", path, 415, None, content=b'{"amount":5,"comment":"x"}', headers=headers)


def test_a_body_that_is_too_large(old_world: World) -> None:
    body = b'{"reports":[' + b" " * BODY_MAX + b"]}"
    refused(old_world, AGENT, "POST", "/job/bulk", 413, None, content=body, headers=JSON)


def test_a_body_that_is_too_large_and_does_not_say_so(old_world: World) -> None:
    pieces = (b" " * 65_536 for _ in range(BODY_MAX // 65_536 + 1))
    refused(old_world, AGENT, "POST", "/job/bulk", 413, None, content=pieces, headers=JSON)


@given(st.binary(max_size=300))
def test_any_bytes_are_answered_with_a_problem(old_world: World, body: bytes) -> None:
    answer = old_world.ask("POST", "/job", AGENT, content=body, headers=JSON)
    assert answer.status_code == 400
    assert answer.json()["title"] == "malformed"


# --- addresses ---


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/alloc?limit=0", "limit"),
        ("/alloc?limit=1001", "limit"),
        ("/alloc?limit=ten", "limit"),
        ("/alloc?limit=1&limit=2", "limit"),
        ("/alloc?after=-1", "after"),
        ("/alloc?after=99999999999999999999", "after"),
        ("/alloc?project=0", "project"),
        ("/alloc?gid=-1", "gid"),
        ("/alloc?state=open", "state"),
        ("/balance?state=", "state"),
        ("/job?state=ACTIVE", "state"),
        ("/alloc?active-at=" + "1" * 41, "active-at"),
        ("/alloc?account=" + "a" * 65, "account"),
        ("/balance?all=maybe", "all"),
        ("/alloc?active-at=yesterday", "active-at"),
        ("/alloc?acount=chem", "acount"),
        ("/job?order=upwards", "order"),
        ("/job?since=x", "since"),
        ("/job?job_id=4294967296", "job_id"),
        ("/usage?by=colour", "by"),
        ("/usage?by=day&after=2026-02-30", "after"),
        ("/usage?by=day&after=2026-02", "after"),
        ("/usage?by=month&after=x", "after"),
        ("/usage?after=-1", "after"),
        ("/usage?after=99999999999", "after"),
        ("/health?x=1", "x"),
    ],
)
def test_parameters(old_world: World, path: str, field: str) -> None:
    refused(old_world, MEMBER, "GET", path, 400, field)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/alloc?state=bogus", "planned, active, frozen, ended"),
        ("/balance?state=bogus", "planned, active, frozen, ended"),
        ("/job?state=bogus", "held, charged, released, lapsed"),
        *((f"{path}?order=bogus", "newest, oldest") for path in ("/job", "/failure", "/activity", "/entry", "/credit", "/predebit")),
        ("/entry?about=bogus", "units, terms, caps"),
        ("/usage?by=bogus", "user, day, month, partition, allocation, job, qos"),
    ],
)
def test_a_word_that_is_none_of_those_allowed(old_world: World, path: str, words: str) -> None:
    problem = refused(old_world, MEMBER, "GET", path, 400, path.partition("?")[2].partition("=")[0])
    assert problem["remedy"] == f"one of {words}"


def test_these_are_all_that_take_words() -> None:
    takers = {
        (path, each["name"])
        for path, item in document()["paths"].items()
        for each in item.get("get", {}).get("parameters", ())
        if "enum" in each["schema"]
    }
    assert takers == {
        *((path, "state") for path in ("/alloc", "/balance", "/job")),
        *((path, "order") for path in ("/job", "/failure", "/activity", "/entry", "/credit", "/predebit")),
        ("/project", "removed"),
        ("/entry", "about"),
        ("/usage", "by"),
    }


def texts_of_addresses() -> list[tuple[str, str]]:
    return [
        (path, each["name"])
        for path, item in document()["paths"].items()
        for each in item.get("get", {}).get("parameters", ())
        if each["in"] == "query" and each["schema"]["type"] == "string"
    ]


@pytest.mark.parametrize("text", ["%00", "a%00b", "%0a", "%1b", "%e2%80%ae"])
@pytest.mark.parametrize(("path", "name"), texts_of_addresses())
def test_characters_that_nobody_can_see_in_a_filter(old_world: World, path: str, name: str, text: str) -> None:
    there = path.replace("{allocation}", "1").replace("{entry}", "1")
    refused(old_world, SUPERUSER, "GET", f"{there}?{name}={text}", 400, name)


LISTS_OF_A_TIME = ["/job", "/failure", "/activity", "/entry", "/credit", "/predebit", "/usage", "/alloc/1/statement"]


@pytest.mark.parametrize("path", LISTS_OF_A_TIME)
def test_a_period_that_ends_before_it_begins(old_world: World, path: str) -> None:
    problem = refused(old_world, SUPERUSER, "GET", f"{path}?since=2026-11-02&until=2026-11-01", 400, "until")
    assert problem["detail"] == "the period ends before it begins: until 2026-11-01T00:00:00Z, since 2026-11-02T00:00:00Z"
    assert problem["remedy"] == "a period goes from since up to, without, until: exchange the two"
    assert old_world.ask("GET", f"{path}?since=2026-11-02&until=2026-11-02", SUPERUSER).status_code == 200


def test_these_are_all_that_take_a_period() -> None:
    takers = {path for method, path in operations().values() if method == "GET" and {"since", "until"} <= parameters(path)}
    assert takers == {each.replace("/1/", "/{allocation}/") for each in LISTS_OF_A_TIME}


def parameters(path: str) -> set[str]:
    return {each["name"] for each in document()["paths"][path]["get"].get("parameters", ())}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nosuch", 404),
        ("/alloc/1/nosuch", 404),
        ("/alloc/x", 404),
        ("/alloc/1.0", 404),
        ("/alloc/-1", 400),
        ("/alloc/0", 400),
        ("/alloc/99999999999999999999", 400),
        ("/ALLOC", 404),
        ("/alloc/..%2f..%2fetc%2fpasswd", 404),
        ("/docs/..%2f..%2fapp.py", 404),
        ("/docs/LICENSE", 404),
        ("/%00", 404),
    ],
)
def test_addresses(old_world: World, path: str, status: int) -> None:
    answer = old_world.ask("GET", path, MEMBER)
    assert (answer.status_code, answer.json()["status"]) == (status, status)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT"])
def test_methods_that_an_address_does_not_take(old_world: World, method: str) -> None:
    answer = old_world.ask(method, "/alloc", MEMBER)
    assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, {"GET", "HEAD", "OPTIONS", "POST"})


def test_options_are_told_to_who_signed_in(old_world: World) -> None:
    path = f"/project/{old_world.own['project']}/member/7"
    answer = old_world.ask("OPTIONS", path, MEMBER)
    assert (answer.status_code, answer.headers["allow"]) == (204, "DELETE, OPTIONS, PUT")
    assert old_world.ask("OPTIONS", path).status_code == 401


def test_texts_of_a_client_never_make_a_second_header_or_line(old_world: World) -> None:
    problem = refused(
        old_world,
        PI,
        "POST",
        "/quote",
        400,
        "account",
        json={"account": "x\r\nSet-Cookie: a=b", "cluster": "alpha", "partition": "std", "tres": "cpu=1", "time_limit": 1},
    )
    assert "\r" not in problem["detail"]
    assert "\n" not in problem["detail"]


# --- quotes ---


@pytest.mark.parametrize(
    ("more", "status", "field"),
    [
        ({"cluster": "nosuch"}, 404, "cluster"),
        ({"partition": "nosuch"}, 404, "partition"),
        ({"tres": ""}, 400, "tres"),
        ({"tres": "cpu=" + "9" * 18, "time_limit": 10**8}, 400, "tres"),
        ({"time_limit": "UNLIMITED"}, 400, "time_limit"),
        ({"time_limit": "9999999-00"}, 400, "time_limit"),
        ({"time_limit": -1}, 400, "time_limit"),
        ({"time_limit": 1.5}, 400, "time_limit"),
    ],
)
def test_quotes(old_world: World, more: dict[str, Any], status: int, field: str) -> None:
    body = {"account": "chem", "cluster": "alpha", "partition": "std", "tres": "cpu=1", "time_limit": 60, **more}
    refused(old_world, PI, "POST", "/quote", status, field, json=body)
