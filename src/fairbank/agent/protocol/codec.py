"""Encoding and decoding of the frames between the PrEp plug-in and the agent.

docs/decisions/0012 has the grammar: a frame is four bytes of length and a body; a body is a word
for its kind, then `key=value` lines in any order, each key once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from fairbank.agent.protocol.messages import (
    VERSION,
    Ack,
    EpilogEvent,
    FromAgent,
    FromPlugin,
    Greeting,
    LimitEvent,
    PluginMessage,
    PrologRequest,
    Verdict,
    Welcome,
)
from fairbank.cluster.job import Run, checked_run
from fairbank.core.errors import InvalidInput
from fairbank.core.ids import ID_MAX, UID_MAX

HEADER = 4  # bytes of length before each body
BODY_MAX = 16_384
AGENT_BODY_MAX = 4_096
REASON_MAX, TEXT_MAX = 63, 511  # bytes; the plug-in's buffers hold one more for the final NUL

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONTROL_IN_LINE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_ESCAPED = re.compile(r"[\x00-\x1f\x7f%]")
_HALF_ESCAPE = re.compile(r"%(?![0-9A-F]{2})")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?(e[+-][0-9]{1,3})?", re.ASCII)

_REMEDY = f"speak version {VERSION} of the protocol"

KINDS: Mapping[str, type[PrologRequest | LimitEvent | EpilogEvent]] = {
    "prolog": PrologRequest,
    "limit": LimitEvent,
    "epilog": EpilogEvent,
}
WORDS: Mapping[type[PluginMessage], str] = {message: word for word, message in KINDS.items()}


def split_frames(received: bytes, *, max_body: int = BODY_MAX) -> tuple[list[bytes], bytes]:
    """Return the complete bodies in the received bytes, and the rest.

    Raises:
        InvalidInput: a frame is longer than `max_body` bytes.
    """
    bodies: list[bytes] = []
    begin = 0
    while len(received) - begin >= HEADER:
        length = int.from_bytes(received[begin : begin + HEADER], "big")
        if length > max_body:
            remedy = f"at most {max_body} bytes"
            raise InvalidInput(f"a frame of {length} bytes", field="frame", remedy=remedy)
        if len(received) - begin < HEADER + length:
            break
        bodies.append(received[begin + HEADER : begin + HEADER + length])
        begin += HEADER + length
    return bodies, received[begin:]


def one_line(text: str, max_bytes: int = TEXT_MAX) -> str:
    """Return the text as one line, cut at a character to what a verdict can carry."""
    line = _CONTROL.sub(" ", text)
    return line.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def parse_integer(text: str, low: int = 0, high: int = ID_MAX) -> int | None:
    """Return the integer that the text is in a frame's notation; None for anything else."""
    return value if _INTEGER.fullmatch(text) and low <= (value := int(text)) <= high else None


def read_fields(body: bytes) -> tuple[str, Fields]:
    """Return the word for the kind and the fields of a body.

    Raises:
        InvalidInput: the body is not UTF-8, or not made of `key=value` lines with each key once.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidInput("a frame that is no UTF-8", field="frame", remedy="UTF-8") from None
    word, *lines = text.split("\n")
    if not lines or lines.pop() != "":
        text = "a frame that does not end with a line feed"
        raise InvalidInput(text, field="frame", remedy="end each line")
    fields: dict[str, str] = {}
    # One search over the body instead of one per line: nearly no body has a control character.
    has_controls = _CONTROL_IN_LINE.search(text) is not None
    for line in lines:
        key, equals, value = line.partition("=")
        if not equals or not key or key in fields or (has_controls and _CONTROL.search(line)):
            text = f"{line[:40]!r} is no line of a frame"
            raise InvalidInput(text, field="frame", remedy="key=value, each key once")
        fields[key] = value
    return word, Fields(fields)


class Fields:
    """Fields of a body, by key; each can be taken once. Methods raise InvalidInput with the key."""

    def __init__(self, fields: dict[str, str]) -> None:
        self._fields = fields

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def text(self, key: str, default: str | None = None) -> str:
        raw = self._fields.pop(key, default)
        if raw is None:
            raise InvalidInput(f"{key} is missing", field=key, remedy="send it once")
        if "%" not in raw:
            return raw
        if _HALF_ESCAPE.search(raw):
            text = f"{raw[:40]!r} has a % that begins nothing"
            raise InvalidInput(text, field=key, remedy="write % as %25")
        try:
            return unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            raise InvalidInput(f"{key} is no UTF-8", field=key, remedy="UTF-8") from None

    def integer(self, key: str, low: int = 0, high: int = ID_MAX) -> int:
        raw = self._fields.pop(key, None)
        if raw is None:
            raise InvalidInput(f"{key} is missing", field=key, remedy="send it once")
        if (value := parse_integer(raw, low, high)) is None:
            remedy = f"a whole number from {low} to {high}"
            raise InvalidInput(f"{raw[:40]!r} is no {key}", field=key, remedy=remedy)
        return value

    def pair(self, first: str, second: str) -> tuple[int, int] | None:
        if first in self or second in self:
            return self.integer(first), self.integer(second)
        return None

    def check_all_taken(self) -> None:
        for key in self._fields:
            raise InvalidInput(f"{key[:40]!r} is not known here", field="key", remedy=_REMEDY)


# ------------------------------------------------------------------ decoding


class UnreadableFrame(msgspec.Struct, frozen=True, kw_only=True):
    """Frame with a number whose body cannot be decoded.

    `kind` is a word of the protocol or `other`; for a prolog the plug-in waits for a verdict.
    `partition` and `batch` are empty and False where they cannot be read. `why` is the error.
    """

    number: int
    kind: str
    partition: str
    batch: bool
    body: bytes
    why: InvalidInput

    @property
    def error(self) -> str:
        return f"{self.kind}: {self.why.message} ({self.why.field})"


def decode_plugin_message(body: bytes) -> FromPlugin:
    """Return the plug-in's message in a body. Raises InvalidInput with the key of an error."""
    word, fields = read_fields(body)
    message: FromPlugin
    if word == "hello":
        message = Greeting(
            version=fields.integer("version", 0, 65_535),
            slurm=fields.text("slurm"),
            cluster=fields.text("cluster"),
        )
    elif word in KINDS:
        common = _common_fields(fields)
        end = _end_fields(fields) if word == "epilog" else {}
        message = KINDS[word](**common, **end)
    else:
        raise unknown_kind(word, "a plug-in")
    fields.check_all_taken()
    return message


def unknown_kind(word: str, sender: str) -> InvalidInput:
    return InvalidInput(f"{word[:40]!r} is no message of {sender}", field="kind", remedy=_REMEDY)


def _common_fields(fields: Fields) -> dict[str, Any]:
    run = Run(
        fields.text("cluster"),
        fields.integer("job"),
        fields.integer("submitted"),
        fields.integer("restart"),
    )
    return {
        "number": fields.integer("number"),
        "run": checked_run(run),
        "uid": fields.integer("uid", 0, UID_MAX),
        "gid": fields.integer("gid", 0, UID_MAX),
        "account": fields.text("account", ""),
        "partition": fields.text("partition", ""),
        "qos": fields.text("qos") if "qos" in fields else None,
        "tres": fields.text("tres", ""),
        "name": fields.text("name", ""),
        "billing": _billing(fields.text("billing", "0")),
        "limit_seconds": fields.integer("limit") if "limit" in fields else None,
        "start": fields.integer("start"),
        "batch": fields.integer("batch", 0, 1) == 1,
        "array": fields.pair("array", "task"),
        "het": fields.pair("het", "component"),
    }


def _end_fields(fields: Fields) -> dict[str, Any]:
    return {
        "end": fields.integer("end"),
        "elapsed_seconds": fields.integer("elapsed"),
        "suspended_seconds": fields.integer("suspended"),
        "state": fields.text("state"),
        "exit_status": fields.integer("exit"),
        "begun": fields.integer("begun", 0, 1) == 1,
    }


def _billing(text: str) -> Fraction:
    if _DECIMAL.fullmatch(text):
        # Nearly all billings are whole, and Fraction reads an int ten times faster than a text.
        return Fraction(int(text)) if text.isdigit() else Fraction(text)
    raise InvalidInput(
        f"{text[:40]!r} is no billing", field="billing", remedy="a decimal number, not negative"
    )


def salvage(body: bytes, why: InvalidInput) -> UnreadableFrame | None:
    """Return what is needed to answer a body that cannot be decoded; None if it has no number.

    Args:
        body: a complete body.
        why: the error of decoding it.
    """
    word, *lines = body.decode("utf-8", "replace").split("\n")
    values: dict[str, list[str]] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if equals:
            values.setdefault(key, []).append(value)
    number = parse_integer(values["number"][0]) if len(values.get("number", ())) == 1 else None
    if number is None or word == "hello":
        return None
    partitions = values.get("partition", [])
    return UnreadableFrame(
        number=number,
        kind=word if word in KINDS else "other",
        partition=partitions[0] if len(partitions) == 1 else "",
        batch=values.get("batch") == ["1"],
        body=body,
        why=why,
    )


# ------------------------------------------------------------------ encoding


def encode(message: FromAgent) -> bytes:
    """Return the frame of a message of the agent."""
    match message:
        case Welcome():
            return frame("hello", {"version": message.version})
        case Ack():
            return frame("ack", {"number": message.number})
        case Verdict():
            fields: dict[str, object] = {"number": message.number, "action": message.action}
            if message.reason:
                fields["reason"] = message.reason
            if message.text:
                fields["text"] = message.text
            return frame("verdict", fields)


def frame(word: str, fields: Mapping[str, object]) -> bytes:
    """Return the frame with this word for its kind and these fields."""
    lines = [
        f"{key}={_ESCAPED.sub(lambda match: f'%{ord(match[0]):02X}', str(value))}\n"
        for key, value in fields.items()
    ]
    body = "".join([f"{word}\n", *lines]).encode()
    return len(body).to_bytes(HEADER, "big") + body
