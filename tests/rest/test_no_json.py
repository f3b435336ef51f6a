"""What is no JSON is told by what it is and where it stands, and never taken for cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.rest.asking.no_json import LOOKED_AT_MAX
from fairbank.rest.asking.reading import read_json
from fairbank.rest.bodies.requests import Movement
from tests.rest.refused import JSON
from tests.rest.world import AGENT, World, report


def told(body: bytes, kind: Any = Movement) -> InvalidInput:
    with pytest.raises(InvalidInput) as no:
        read_json(body, kind)
    assert no.value.remedy
    return no.value


HALF = "\\ud800 is half of a character"

CASES: dict[str, tuple[bytes, str | None, str]] = {
    "half a character at the end": (
        rb'{"amount":5,"comment":"\ud800"}',
        "comment",
        f"comment: {HALF}",
    ),
    "half a character in the middle": (
        rb'{"amount":5,"comment":"a\ud800b and more"}',
        "comment",
        f"comment: {HALF}",
    ),
    "two first halves": (rb'{"amount":5,"comment":"\ud800\ud800"}', "comment", f"comment: {HALF}"),
    "the second half": (
        rb'{"amount":5,"comment":"\udc00"}',
        "comment",
        "comment: \\udc00 is half of a character",
    ),
    "far inside": (
        rb'{"reports":[{},{"a":{"b":["","\ud800"]}}]}',
        "reports[1].a.b[1]",
        f"reports[1].a.b[1]: {HALF}",
    ),
    "in a key": (rb'{"a":{"\ud800":1}}', "a", f"a: in a key, {HALF}"),
    "in the first key": (rb'{"\ud800":1}', None, f"the body: in a key, {HALF}"),
    "all of it": (rb'"\ud800"', None, f"the body: {HALF}"),
    "no UTF-8": (
        b'{"amount":5,"comment":"a\xff"}',
        "comment",
        "comment: byte 24 of the body (0xff) is not UTF-8",
    ),
    "no UTF-8 in a key": (b'{"am\xffount":5}', None, "byte 4 of the body (0xff) is not UTF-8"),
    "no UTF-8 and no JSON": (b'{"comment":"\xff', None, "byte 12 of the body (0xff) is not UTF-8"),
    "a mark": (
        b'\xef\xbb\xbf{"amount":5}',
        None,
        "the body is not JSON: it begins with a byte order mark",
    ),
    "UTF-16": (
        '{"amount":5}'.encode("utf-16"),
        None,
        "the body is not UTF-8, but perhaps UTF-16 or UTF-32",
    ),
    "UTF-16 without a mark": (
        '{"amount":5}'.encode("utf-16-le"),
        None,
        "the body is not UTF-8, but perhaps UTF-16 or UTF-32",
    ),
    "NaN": (b'{"amount":NaN}', "amount", "amount: NaN is no number in JSON"),
    "infinite": (b'{"a":[1,-Infinity]}', "a[1]", "a[1]: -Infinity is no number in JSON"),
    "beyond all bounds": (
        b'{"amount":1e400,"comment":"x"}',
        "amount",
        "amount: number out of range",
    ),
    "cut off": (b'{"amount":5,"comment":"x"', None, "the body is not JSON: it ends too early"),
    "nothing": (b"", None, "the body is not JSON: it ends too early"),
    "too much": (
        b'{"amount":5,"comment":"x"}}',
        None,
        "the body is not JSON: trailing characters (byte 27)",
    ),
    "words of Python": (
        b"{'amount':5}",
        None,
        "the body is not JSON: object keys must be strings (byte 1)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_it_is_and_where(case: str) -> None:
    body, field, detail = CASES[case]
    trouble = told(body, Any if case in ("far inside", "in a key", "infinite") else Movement)
    assert (trouble.field, trouble.message) == (field, detail)


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**400])
def test_whole_numbers_beyond_64_bits_are_told_their_bound(number: int) -> None:
    trouble = told(b'{"amount":%d,"comment":"x"}' % number)
    assert trouble.field == "amount"
    assert trouble.message.startswith("amount: expected a whole number ")


def test_a_large_body_is_told_by_its_byte_alone() -> None:
    trouble = told(b'{"a":"' + b"x" * LOOKED_AT_MAX + rb'\ud800 and more"}', Any)
    assert trouble.field is None
    assert "(byte " in trouble.message


@given(
    st.binary(max_size=50).map(lambda tail: b'{"comment":"' + tail)
    | st.text(alphabet='{}[]":,\\ud8001N', max_size=40).map(str.encode)
)
def test_whatever_comes_is_told_in_text_that_can_be_sent(body: bytes) -> None:
    trouble = told(body)
    json.dumps([trouble.message, trouble.field, trouble.remedy], ensure_ascii=False).encode()


def test_one_of_many_reports_spoils_no_other(world: World) -> None:
    good, bad = (
        json.dumps(report(81)).encode(),
        json.dumps(report(82, comment="?")).encode().replace(b"?", b"\xff"),
    )
    answer = world.ask(
        "POST", "/job/bulk", AGENT, content=b'{"reports":[%b,%b]}' % (good, bad), headers=JSON
    )
    assert [(each["status"], each.get("field")) for each in answer.json()["data"]] == [
        (201, None),
        (400, "comment"),
    ]
