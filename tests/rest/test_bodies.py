"""Bodies that are not JSON, repeat a key, or are too large."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.rest.request import BODY_MAX
from tests.rest.responses import JSON, WHY, refused
from tests.rest.world import AGENT, SUPERUSER, World, report

FRACTION = "a number with a fraction or an exponent"
TWICE = {
    "the same": (b'{"amount":5,"comment":"x","amount":5}', "amount"),
    "another": (b'{"amount":5,"amount":7,"comment":"x"}', "amount"),
    "escaped": (b'{"amount":5,"am\\u006funt":7,"comment":"x"}', "amount"),
    "with blanks": (b'{ "comment" : "x" , "amount" : 5 , "comment"\n: "y" }', "comment"),
    "beside colons": (b'{"comment":"a: b: c","amount":5,"amount":7}', "amount"),
}


@pytest.mark.parametrize(("body", "field"), TWICE.values(), ids=TWICE.keys())
def test_repeated_key_is_refused(shared_world: World, body: bytes, field: str) -> None:
    path = f"/alloc/{shared_world.own['allocation']}/deposit"
    problem = refused(shared_world, SUPERUSER, "POST", path, 400, field, content=body, headers=JSON)
    assert (problem["detail"], problem["remedy"]) == (f"'{field}' is there twice", "send it once")


@pytest.mark.parametrize(
    "body",
    [
        b'{"do":"hold","do":"dance"}',
        b'{"do":1,"do":"hold"}',
        b'{"do":"hold","do":"complete","x":{}}',
    ],
)
def test_repeated_key_is_reported_before_invalid_values(shared_world: World, body: bytes) -> None:
    problem = refused(shared_world, AGENT, "POST", "/job", 400, "do", content=body, headers=JSON)
    assert (problem["detail"], problem["remedy"]) == ("'do' is there twice", "send it once")


_JOB = {"account": "chem", "partition": "std", "tres": "cpu=1", "time_limit": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "detail"),
    [
        (
            "POST",
            "/job/{job}/refund",
            {"amount": "5", **WHY},
            'amount is "5", expected a whole number, or nothing, got text',
        ),
        (
            "PUT",
            "/alloc/{allocation}/cap/7",
            {"cap": 1.5},
            f"cap is 1.5, expected a whole number, or nothing, got {FRACTION}",
        ),
        (
            "PATCH",
            "/alloc/{allocation}",
            {"shared": 1, **WHY},
            "shared is 1, expected true or false, or nothing, got a whole number",
        ),
        ("POST", "/job", report(5, billing="abc"), 'billing is "abc", expected a number'),
        ("POST", "/quote", _JOB, "time_limit is [], expected a whole number or text, got a list"),
        (
            "POST",
            "/token",
            {"label": "x", "scopes": []},
            "scopes is [], expected a list, at least 1 element",
        ),
        (
            "POST",
            "/project",
            {"gname": "x" * 256, "gid": 5},
            f'gname is "{"x" * 39}..., expected text, at most 255 characters',
        ),
    ],
)
def test_error_names_the_expected_type_in_plain_words(
    shared_world: World, method: str, path: str, body: dict[str, Any], detail: str
) -> None:
    field = detail.partition(" ")[0]
    problem = refused(
        shared_world, SUPERUSER, method, path.format(**shared_world.own), 400, field, json=body
    )
    assert problem["detail"] == detail


def test_colons_and_quotes_in_a_text_are_not_keys(world: World) -> None:
    body = {"amount": 5, "comment": 'at 07:30: "amount": 7, \\"amount\\": 9'}
    assert (
        world.ask(
            "POST", f"/alloc/{world.own['allocation']}/deposit", SUPERUSER, json=body
        ).status_code
        == 201
    )


def test_repeated_key_in_one_report_of_a_batch_is_refused(world: World) -> None:
    good, twice = (
        json.dumps(report(71, comment='"reports": {')),
        json.dumps(report(72))[:-1] + ', "amount": 1, "amount": 2}',
    )
    answer = world.ask(
        "POST", "/job/bulk", AGENT, content=f'{{"reports":[{good},{twice}]}}'.encode(), headers=JSON
    )
    assert [(row["status"], row.get("field")) for row in answer.json()["data"]] == [
        (201, None),
        (400, "amount"),
    ]
    again = f'{{"reports":[{good}],"reports":[{good}]}}'.encode()
    refused(world, AGENT, "POST", "/job/bulk", 400, "reports", content=again, headers=JSON)


INCOMPLETE = "send one complete JSON object in UTF-8"
NO_OBJECT = "/docs describes what may be sent"
BROKEN = {
    "nothing": (
        b"",
        None,
        "send a JSON object, with its Content-Length; /docs describes what may be sent",
    ),
    "truncated": (b'{"amount": 5, "comm', None, INCOMPLETE),
    "two": (b'{"amount":5,"comment":"x"}{"amount":5,"comment":"x"}', None, INCOMPLETE),
    "not UTF-8": (b'{"amount":5,"comment":"\xff"}', None, INCOMPLETE),
    "a lone surrogate": (b'{"amount":5,"comment":"\\ud800"}', None, INCOMPLETE),
    "UTF-16": ('{"amount":5,"comment":"x"}'.encode("utf-16"), None, INCOMPLETE),
    "deep": (
        b'{"amount":' + b"[" * 100_000,
        "amount",
        "send a whole number: no quotes, no fraction, no exponent",
    ),
    "deep and closed": (b"[" * 50_000 + b"]" * 50_000, None, NO_OBJECT),
    "a list": (b"[]", None, NO_OBJECT),
    "a string": (b'"x"', None, NO_OBJECT),
    "null": (b"null", None, NO_OBJECT),
    "a comment": (b'{"amount":5,/**/"comment":"x"}', None, INCOMPLETE),
    "NaN": (b'{"amount":NaN,"comment":"x"}', None, INCOMPLETE),
    "a form": (b"amount=5&comment=x", None, INCOMPLETE),
}


@pytest.mark.parametrize(("body", "field", "remedy"), BROKEN.values(), ids=BROKEN.keys())
def test_body_that_is_not_a_json_object_is_refused(
    shared_world: World, body: bytes, field: str | None, remedy: str
) -> None:
    path = f"/alloc/{shared_world.own['allocation']}/deposit"
    problem = refused(shared_world, SUPERUSER, "POST", path, 400, field, content=body, headers=JSON)
    assert problem["remedy"] == remedy


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
    ],
)
def test_body_without_json_content_type_is_refused(
    shared_world: World, content_type: str | None
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    path = f"/alloc/{shared_world.own['allocation']}/deposit"
    problem = refused(
        shared_world,
        SUPERUSER,
        "POST",
        path,
        415,
        None,
        content=b'{"amount":5,"comment":"x"}',
        headers=headers,
    )
    sent = repr(content_type) if content_type else "is missing"
    assert sent in problem["detail"]
    assert "application/json" in problem["remedy"]


@pytest.mark.parametrize(
    ("header", "packed"),
    [
        ("Content-Encoding", "gzip"),
        ("Content-Encoding", "br"),
        ("Transfer-Encoding", "gzip, chunked"),
    ],
)
@pytest.mark.parametrize("path", ["/job", "/project"])
def test_compressed_body_is_refused(
    shared_world: World, path: str, header: str, packed: str
) -> None:
    refused(
        shared_world,
        SUPERUSER,
        "POST",
        path,
        400,
        header,
        content=b"{}",
        headers={**JSON, header: packed},
    )


def test_too_large_body_is_refused(shared_world: World) -> None:
    body = b'{"reports":[' + b" " * BODY_MAX + b"]}"
    problem = refused(
        shared_world, AGENT, "POST", "/job/bulk", 413, None, content=body, headers=JSON
    )
    assert f"{BODY_MAX} bytes" in problem["detail"]


def test_too_large_body_without_content_length_is_refused(shared_world: World) -> None:
    pieces = (b" " * 65_536 for _ in range(BODY_MAX // 65_536 + 1))
    refused(shared_world, AGENT, "POST", "/job/bulk", 413, None, content=pieces, headers=JSON)


@given(st.binary(max_size=300))
def test_any_invalid_body_gets_a_problem(shared_world: World, body: bytes) -> None:
    answer = shared_world.ask("POST", "/job", AGENT, content=body, headers=JSON)
    assert answer.status_code == 400
    assert answer.json()["title"] == "invalid input"


def test_bare_list_of_reports_is_refused_with_the_accepted_form(shared_world: World) -> None:
    problem = refused(shared_world, AGENT, "POST", "/job/bulk", 400, "reports", json=[report(1)])
    assert problem["remedy"] == 'send {"reports": [...]}, the reports in their order'


@pytest.mark.parametrize(
    ("path", "body", "remedy"),
    [
        (
            "/alloc/{allocation}/deposit",
            {"amount": 10**15 + 1, "comment": "x"},
            "at most 1000000000000000 SU-minutes",
        ),
        ("/alloc/{allocation}/deposit", {"amount": 0, "comment": "x"}, "at least 1 SU-minute"),
        ("/job", report(1, time_limit=10**9), "at most 316224000 seconds"),
    ],
)
def test_number_out_of_range_is_refused_with_bound_and_unit(
    shared_world: World, path: str, body: dict[str, Any], remedy: str
) -> None:
    actor, field = (AGENT, "time_limit") if path == "/job" else (SUPERUSER, "amount")
    problem = refused(
        shared_world, actor, "POST", path.format(**shared_world.own), 400, field, json=body
    )
    assert problem["remedy"] == remedy
