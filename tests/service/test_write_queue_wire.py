"""Protocol between a server and its write queue process: everything arrives unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.policy import Overrun, Policy
from fairbank.bank.refusals import Detail, Facts, Reason, Refusal, Resolution
from fairbank.bank.requests import Request, SubmittedRequest, digest
from fairbank.bank.requests import Request as EveryKind
from fairbank.bank.rules import Done, Outcome
from fairbank.bank.run import RunEnd, RunState
from fairbank.core.errors import Busy, Corrupt, FairbankError, Unavailable
from fairbank.core.time import Instant
from fairbank.service.write_queue.protocol import (
    FrameReader,
    RequestBatch,
    WorkerSettings,
    decode_batches,
    decode_error,
    decode_failure,
    decode_replies,
    decode_result,
    decode_settings,
    encode,
    encode_error,
    encode_result,
    frame,
)
from tests.bank.request_strategies import of_anything, submitted_requests
from tests.faults.sample import requests

outcomes = st.lists(
    st.builds(
        Done,
        entry=st.integers(1, 99),
        amount=st.integers(-9, 2**53),
        written_off=st.integers(0, 9),
        again=st.booleans(),
    )
    | st.builds(
        Refusal,
        reason=st.sampled_from(Reason),
        available=st.integers(-(2**53), 9),
        detail=st.sampled_from(Detail),
        facts=st.none() | st.builds(Facts, held=st.integers(0, 9), cause=st.text(max_size=3)),
    )
    | st.just(
        Refusal(
            reason=Reason.RUN_CLOSED,
            resolution=Resolution(state=RunState.CHARGED, end=RunEnd("COMPLETED", 60, Instant(9))),
        )
    ),
    max_size=6,
)


@given(st.lists(submitted_requests(of_anything), max_size=3))
def test_requests_arrive_unchanged_with_the_same_digest(batch: list[SubmittedRequest]) -> None:
    (arrived,) = decode_batches(encode([RequestBatch(7, 1.5, batch)]))
    assert arrived == RequestBatch(7, 1.5, batch)
    assert list(map(digest, arrived.batch)) == list(map(digest, batch))


@pytest.mark.parametrize(
    "bank_request", requests(), ids=lambda bank_request: type(bank_request).__name__
)
def test_each_kind_of_request_arrives_with_all_its_fields(bank_request: Request) -> None:
    request = SubmittedRequest(
        bank_request, Instant(5), 7, acting_as=8, report_digest=b"\0\xff", latest=9
    )
    (arrived,) = decode_batches(encode([RequestBatch(0, 0.0, [request])]))
    assert arrived.batch == [request]
    assert digest(arrived.batch[0]) == digest(request)


def test_sample_contains_nearly_every_kind() -> None:
    kinds = {type(request) for request in requests()}
    assert len(kinds) >= len(EveryKind.__args__) - 5


@given(outcomes)
def test_results_arrive_in_order(results: list[Outcome]) -> None:
    (answer,) = decode_replies(encode([encode_result(3, results)]))
    assert answer.number == 3
    assert decode_result(answer) == results


@pytest.mark.parametrize(
    "error",
    [
        Busy("many wait", retry_after_seconds=7),
        Unavailable("nobody is there", remedy="look"),
        Corrupt("damaged", field="x"),
        FairbankError("this request breaks the bank"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_arrive_unchanged(error: FairbankError) -> None:
    (answer,) = decode_replies(encode([encode_result(3, error)]))
    arrived = decode_result(answer)
    assert type(arrived) is type(error)
    assert vars(arrived) == vars(error)


def test_unexpected_exception_arrives_as_runtime_error() -> None:
    arrived = decode_error(encode_error(KeyError("x")))
    assert (type(arrived), str(arrived)) == (RuntimeError, "KeyError: 'x'")


def test_worker_settings_and_start_result_arrive_unchanged() -> None:
    policy = Policy(overrun=Overrun.RECORD, enforce=False, free_states=frozenset({"FAILED"}))
    opening = WorkerSettings("postgresql://a:b@c/d", "wal", policy, 30.0, "json")
    assert decode_settings(encode(opening)) == opening
    assert decode_failure(encode(None)) is None


def pieces(data: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return (data[begin:end] for begin, end in pairwise(places))


@given(st.lists(st.binary(max_size=9), max_size=4), st.lists(st.integers(0, 99), max_size=6))
def test_frames_are_reassembled_from_any_pieces(bodies: list[bytes], cuts: list[int]) -> None:
    frames = FrameReader()
    data = b"".join(map(frame, bodies))
    arrived = [body for piece in pieces(data, cuts) for body in frames.feed(piece)]
    assert [msgspec.msgpack.decode(body) for body in arrived] == bodies
