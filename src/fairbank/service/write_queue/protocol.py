"""What the server and its counter's process say to each other: frames of msgpack, each with its length before it.

The server says how the bank is to be opened, and is told nothing, or why that failed. Then it sends lists of wishes and gets lists of
answers, each with all that had gathered. An empty list of wishes is the orderly end; a line that just ends is a server that was killed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from fairbank.bank.ledger import Done, Outcome
from fairbank.bank.policy import Policy
from fairbank.bank.refusal import Refusal
from fairbank.bank.wish import Asked
from fairbank.core import errors
from fairbank.service.write_queue.queue import BatchResult

_LENGTH = struct.Struct("!I")
READ_MAX = 1 << 18


class WorkerSettings(msgspec.Struct, frozen=True, array_like=True):
    """How the other process opens the bank, and logs. The URL may hold a password, so it travels here and in no argument."""

    url: str
    journal: str | None
    policy: Policy
    retry_seconds: float
    log: str


class RequestBatch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A submission. Both processes read one clock, that of the machine's uptime: `begun_by` is of it."""

    number: int
    start_deadline: float
    batch: Sequence[Asked]


class BatchFailure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Why there is no answer: a trouble, by its class, or a fault of ours, whose trace is in the log."""

    kind: str
    message: str
    field: str | None = None
    remedy: str | None = None
    retry_after_seconds: int = 1


class BatchReply(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What came of a submission: what was granted and what was refused, each in order; `places` are those of the refused."""

    number: int
    granted: list[Done] = []
    refused: list[Refusal] = []
    refused_positions: list[int] = []
    failure: BatchFailure | None = None


def encode_result(number: int, came: BatchResult) -> BatchReply:
    """What came of a submission, to be sent."""
    if isinstance(came, Exception):
        return BatchReply(number, failure=encode_error(came))
    granted = [each for each in came if isinstance(each, Done)]
    if len(granted) == len(came):
        return BatchReply(number, granted)
    no = {place: each for place, each in enumerate(came) if isinstance(each, Refusal)}
    return BatchReply(number, granted, list(no.values()), list(no))


def decode_result(answer: BatchReply) -> BatchResult:
    """What was sent as `answer`."""
    if answer.failure is not None:
        return decode_error(answer.failure)
    outcomes: list[Outcome] = [*answer.granted]
    for place, each in zip(answer.refused_positions, answer.refused, strict=True):
        outcomes.insert(place, each)
    return outcomes


def encode_error(error: Exception) -> BatchFailure:
    """An error, to be sent."""
    if not isinstance(error, errors.Trouble):
        return BatchFailure("", f"{type(error).__name__}: {error}")
    retry = error.retry_after_seconds if isinstance(error, errors.Busy) else 1
    return BatchFailure(type(error).__name__, error.message, error.field, error.remedy, retry)


_ERROR_CLASSES: list[type[errors.Trouble]] = [errors.Trouble, *errors.Trouble.__subclasses__()]
_CLASS_BY_NAME = {each.__name__: each for each in _ERROR_CLASSES}


def decode_error(failure: BatchFailure) -> Exception:
    """The error that was sent as `failure`."""
    if failure.kind == errors.Busy.__name__:
        return errors.Busy(failure.message, retry_after_seconds=failure.retry_after_seconds)
    kind = _CLASS_BY_NAME.get(failure.kind)
    return (
        RuntimeError(failure.message)
        if kind is None
        else kind(failure.message, field=failure.field, remedy=failure.remedy)
    )


encode = msgspec.msgpack.Encoder().encode
decode_settings = msgspec.msgpack.Decoder(WorkerSettings).decode
decode_batches = msgspec.msgpack.Decoder(list[RequestBatch]).decode
decode_failure = msgspec.msgpack.Decoder(BatchFailure | None).decode
decode_replies = msgspec.msgpack.Decoder(list[BatchReply]).decode


def frame(said: object) -> bytes:
    """Something said, as it goes over the line."""
    body = encode(said)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Cuts what arrives into the bodies of frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that are complete with this."""
        rest, bodies, begin = self._rest, [], 0
        rest += data
        while len(rest) >= begin + _LENGTH.size:
            end = begin + _LENGTH.size + _LENGTH.unpack_from(rest, begin)[0]
            if len(rest) < end:
                break
            bodies.append(bytes(rest[begin + _LENGTH.size : end]))
            begin = end
        del rest[:begin]
        return bodies
