"""Protocol between the server and its write queue process: length-prefixed msgpack frames.

The server sends WorkerSettings and gets nothing, or the BatchFailure that kept the store from
opening. Then it sends lists of RequestBatch and gets lists of BatchReply; a list holds all that
gathered since the last. An empty list of batches is the end message. A connection that ends
without it belonged to a server that was killed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Done, Outcome
from fairbank.core import errors
from fairbank.service.write_queue.queue import BatchResult

_LENGTH = struct.Struct("!I")
READ_MAX = 1 << 18


class WorkerSettings(msgspec.Struct, frozen=True, array_like=True):
    """Settings of the process. The URL may hold a password, so it is no command line argument."""

    url: str
    journal: str | None
    policy: Policy
    retry_seconds: float
    log: str


class RequestBatch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Submitted batch. `start_deadline` is monotonic time, which is the same in both processes."""

    number: int
    start_deadline: float
    batch: Sequence[SubmittedRequest]


class BatchFailure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Error in place of a result. `kind` is empty for a bug, whose traceback is in the log."""

    kind: str
    message: str
    field: str | None = None
    remedy: str | None = None
    retry_after_seconds: int = 1


class BatchReply(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Result of a batch.

    Granted and refused outcomes are in two lists, so that msgspec decodes each without a tag;
    `refused_positions` are the indexes of the refused ones in the batch.
    """

    number: int
    granted: list[Done] = []
    refused: list[Refusal] = []
    refused_positions: list[int] = []
    failure: BatchFailure | None = None


def encode_result(number: int, result: BatchResult) -> BatchReply:
    """Return the reply for the result of a batch."""
    if isinstance(result, Exception):
        return BatchReply(number, failure=encode_error(result))
    granted = [outcome for outcome in result if isinstance(outcome, Done)]
    if len(granted) == len(result):
        return BatchReply(number, granted)
    refused = {i: outcome for i, outcome in enumerate(result) if isinstance(outcome, Refusal)}
    return BatchReply(number, granted, list(refused.values()), list(refused))


def decode_result(reply: BatchReply) -> BatchResult:
    """Return the result of a batch from its reply."""
    if reply.failure is not None:
        return decode_error(reply.failure)
    outcomes: list[Outcome] = [*reply.granted]
    for position, refusal in zip(reply.refused_positions, reply.refused, strict=True):
        outcomes.insert(position, refusal)
    return outcomes


def encode_error(error: Exception) -> BatchFailure:
    """Return an error in the form in which it is sent."""
    if not isinstance(error, errors.FairbankError):
        return BatchFailure("", f"{type(error).__name__}: {error}")
    retry = error.retry_after_seconds if isinstance(error, errors.Busy) else 1
    return BatchFailure(type(error).__name__, error.message, error.field, error.remedy, retry)


_ERROR_CLASSES: list[type[errors.FairbankError]] = [
    errors.FairbankError,
    *errors.FairbankError.__subclasses__(),
]
_CLASS_BY_NAME = {cls.__name__: cls for cls in _ERROR_CLASSES}


def decode_error(failure: BatchFailure) -> Exception:
    """Return the error that was sent."""
    if failure.kind == errors.Busy.__name__:
        return errors.Busy(failure.message, retry_after_seconds=failure.retry_after_seconds)
    cls = _CLASS_BY_NAME.get(failure.kind)
    if cls is None:
        return RuntimeError(failure.message)
    return cls(failure.message, field=failure.field, remedy=failure.remedy)


encode = msgspec.msgpack.Encoder().encode
decode_settings = msgspec.msgpack.Decoder(WorkerSettings).decode
decode_batches = msgspec.msgpack.Decoder(list[RequestBatch]).decode
decode_failure = msgspec.msgpack.Decoder(BatchFailure | None).decode
decode_replies = msgspec.msgpack.Decoder(list[BatchReply]).decode


def frame(message: object) -> bytes:
    """Return a message as a frame."""
    body = encode(message)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Splitter of received bytes into the bodies of frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes and return the bodies that are complete now."""
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
