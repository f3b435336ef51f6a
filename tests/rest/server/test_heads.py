"""Heads that were read before: which are kept, and which requests they are good for."""

from __future__ import annotations

from typing import Any, cast

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fairbank.rest.server.heads import BODY_MAX, LENGTH_MAX, Heads


class Parsed:
    """As much of a request that was parsed as the heads look at."""

    def __init__(self, *lengths: bytes, body: bytes = b"{}", keep_alive: bool = True) -> None:
        self.scope = {"headers": [(b"content-length", each) for each in lengths]}
        self.body, self.keep_alive = bytearray(body), keep_alive


def learned(data: bytes, parsed: Parsed, *, most: int = 10) -> Heads:
    heads = Heads(most)
    heads.learn(data, cast("RequestResponseCycle", parsed))
    return heads


HEAD = b"POST /job HTTP/1.1\r\nContent-Length: 2\r\n\r\n"


def test_a_head_is_found_by_its_bytes_with_the_body_that_it_announces() -> None:
    heads = learned(HEAD + b"{}", Parsed(b"2"))
    found = heads.find(HEAD + b"[]")
    assert found is not None
    assert found[0].scope["headers"] == [(b"content-length", b"2")]
    assert found[1] == b"[]"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n\r\n",
        HEAD,
        HEAD[:-1],
        HEAD + b"{",
        HEAD + b"{}" + HEAD + b"{}",
        HEAD.lower() + b"{}",
    ],
)
def test_nothing_else_is_taken_for_it(data: bytes) -> None:
    assert learned(HEAD + b"{}", Parsed(b"2")).find(data) is None


LONG = b"x" * (BODY_MAX + 1)
UNSURE: dict[str, tuple[bytes, Parsed]] = {
    "no length": (HEAD + b"{}", Parsed()),
    "two lengths": (HEAD + b"{}", Parsed(b"2", b"2")),
    "another request after it": (HEAD + b"{}" + HEAD, Parsed(b"2")),
    "a body that had begun before": (HEAD + b"{}", Parsed(b"2", body=b"{}{}")),
    "the last of its connection": (HEAD + b"{}", Parsed(b"2", keep_alive=False)),
    "a long body": (HEAD + LONG, Parsed(b"%d" % len(LONG), body=LONG)),
    "a long head": (b"X: %b\r\n" % (b"x" * LENGTH_MAX) + HEAD + b"{}", Parsed(b"2")),
}


@pytest.mark.parametrize("case", UNSURE)
def test_what_may_not_be_the_whole_request_is_not_kept(case: str) -> None:
    data, parsed = UNSURE[case]
    assert len(learned(data, parsed)) == 0


def test_whoever_makes_heads_up_fills_no_memory() -> None:
    heads = Heads(3)
    for number in range(10):
        heads.learn(b"X: %d\r\n" % number + HEAD + b"{}", cast("Any", Parsed(b"2")))
        assert len(heads) <= 3
    assert heads.find(b"X: 9\r\n" + HEAD + b"[]") is not None
