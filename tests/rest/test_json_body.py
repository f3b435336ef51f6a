"""Bodies that are not JSON, and numbers that no field can hold."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.rest.json_body import read_json
from fairbank.rest.schemas.requests import Movement
from tests.rest.responses import JSON
from tests.rest.world import AGENT, World, report

REMEDY = "send one complete JSON object in UTF-8"


def refusal_of(body: bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read_json(body, Movement)
    return caught.value


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"amount":5,"comment":"x"', "Input data was truncated"),
        (b"", "Input data was truncated"),
        (b'{"amount":5,"comment":"x"}}', "trailing characters (byte 27)"),
        (b"{'amount':5}", "object keys must be strings (byte 1)"),
        (b'{"amount":NaN}', "invalid character (byte 10)"),
        (b'{"amount":5,"comment":"a\xff"}', "can't decode byte 0xff in position"),
    ],
)
def test_body_that_is_not_json_names_the_byte(body: bytes, detail: str) -> None:
    error = refusal_of(body)
    assert error.message.startswith("the body cannot be read: ")
    assert detail in error.message
    assert error.remedy == REMEDY
    assert error.remedy == "send one complete JSON object in UTF-8"


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**400])
def test_number_beyond_64_bits_names_its_field(number: int) -> None:
    error = refusal_of(b'{"amount":%d,"comment":"x"}' % number)
    assert error.field == "amount"
    assert re.match(
        r"amount is -?\d+(\.\.\.)?, (expected a whole number|number out of) ", error.message
    )


@given(
    st.binary(max_size=50).map(lambda tail: b'{"comment":"' + tail)
    | st.text(alphabet='{}[]":,\\ud8001N', max_size=40).map(str.encode)
)
def test_every_error_can_be_encoded_as_utf_8(body: bytes) -> None:
    error = refusal_of(body)
    json.dumps([error.message, error.field, error.remedy], ensure_ascii=False).encode()


def test_invalid_report_of_a_batch_affects_no_other(world: World) -> None:
    valid = json.dumps(report(81)).encode()
    invalid = json.dumps(report(82, comment="?")).encode().replace(b"?", b"\xff")
    body = b'{"reports":[%b,%b]}' % (valid, invalid)
    rows = world.ask("POST", "/job/bulk", AGENT, content=body, headers=JSON).json()["data"]
    assert [row["status"] for row in rows] == [201, 400]
    assert "can't decode byte 0xff" in rows[1]["detail"]
