"""Responses as the client reads them, with errors and refusals."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cli.framework.error_exit import exit_code
from fairbank.core.errors import (
    Conflict,
    Corrupt,
    FairbankError,
    Forbidden,
    InvalidInput,
    NotFound,
    RefusalKind,
    Unauthenticated,
    Unavailable,
)
from fairbank.rest.client import Address, Refused
from fairbank.rest.client.response import BODY_MAX, HEAD_MAX, error_of, read_answer, read_response

HERE = Address("unix", "/run/bank.sock")


# --- responses ---


def split_into(data: bytes, size: int) -> list[bytes]:
    return [data[place : place + size] for place in range(0, len(data), size)]


@given(st.binary(max_size=300), st.integers(1, 50))
def test_body_with_length_is_read_in_any_pieces(body: bytes, size: int) -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    assert read_response(split_into(response, size)) == (200, body)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.integers(1, 50))
def test_chunked_body_is_read_in_any_pieces(chunks: list[bytes], size: int) -> None:
    body = b"".join(b"%x;x=1\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    response = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\nX: y\r\n\r\n"
    )
    assert read_response(split_into(response, size)) == (200, b"".join(chunks))


def test_body_without_length_ends_with_the_connection() -> None:
    assert read_response([b"HTTP/1.1 200 OK\r\n\r\n", b"ab", b"c"]) == (200, b"abc")


def test_informational_responses_are_skipped() -> None:
    assert read_response([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"]) == (
        204,
        b"",
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\nabc" % (BODY_MAX + 1),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"x" * (HEAD_MAX + 100),
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * HEAD_MAX,
        b"HTTP/1.1 100 Continue\r\n\r\n" * HEAD_MAX + b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        + b"X: y\r\n" * HEAD_MAX
        + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naand more\r\n0\r\n\r\n",
    ],
)
def test_invalid_response_is_unreachable(data: bytes) -> None:
    with pytest.raises(Unavailable):
        read_response(split_into(data, 1000))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_response_or_unreachable(data: bytes) -> None:
    for start in (
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ):
        try:
            read_response([start + data])
        except Unavailable:
            pass


# --- results and errors ---


@pytest.mark.parametrize(
    ("status", "problem", "kind", "code", "message"),
    [
        (
            400,
            {"title": "invalid input", "detail": "bad", "field": "gid", "remedy": "mend"},
            InvalidInput,
            2,
            "bad",
        ),
        (401, {"title": "unauthenticated"}, Unauthenticated, 4, "unauthenticated"),
        (403, {"title": "forbidden"}, Forbidden, 4, "forbidden"),
        (404, {"title": "not found"}, NotFound, 3, "not found"),
        (409, {"title": "conflict"}, Conflict, 7, "conflict"),
        (405, {"title": "method not allowed"}, InvalidInput, 2, "method not allowed"),
        (500, {"title": "corrupt"}, Corrupt, 8, "corrupt"),
        (500, {"title": "failure"}, FairbankError, 1, "failure"),
        (503, {"title": "busy"}, Unavailable, 6, "busy"),
        (502, {}, Unavailable, 6, "the bank answered with status 502"),
        (418, {}, InvalidInput, 2, "the bank answered with status 418"),
    ],
)
def test_problem_becomes_an_error_with_its_exit_code(
    status: int, problem: dict[str, str], kind: type[FairbankError], code: int, message: str
) -> None:
    error = error_of(status, problem)
    assert type(error) is kind
    assert exit_code(error) == code
    assert error.message == message
    if "field" in problem:
        assert (error.field, error.remedy) == ("gid", "mend")


@pytest.mark.parametrize("status", [kind.status for kind in RefusalKind])
def test_refusal_has_its_amounts(status: int) -> None:
    refusal = {
        "reason": "INSUFFICIENT_CREDIT",
        "requested": 60,
        "available": 6,
        "shortfall": 54,
        "remedies": ["wait", "ask"],
    }
    problem = {"title": "refused", "detail": "too little", "refusal": refusal}
    with pytest.raises(Refused) as raised:
        read_answer(status, json.dumps(problem).encode(), HERE)
    assert (raised.value.status, raised.value.refusal["shortfall"], raised.value.remedies) == (
        status,
        54,
        ["wait", "ask"],
    )


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'"x"', b"\xff", b"[" * 100_000])
def test_response_that_is_no_json_object_is_unreachable(body: bytes) -> None:
    with pytest.raises(Unavailable, match="not a bank"):
        read_answer(200, body, HERE)
