"""Messages between the PrEp plug-in and the agent, and the encoding of their frames.

A frame is the length of its body in four bytes, the most significant first, and the body in
UTF-8: a word for its kind, then lines `key=value` in any order, each key once. Control characters
and % in values are written as %XX. So the plug-in needs no C library (docs/decisions/0012).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from fractions import Fraction
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from fairbank.cluster.job import Run, check_run
from fairbank.core.errors import InvalidInput
from fairbank.core.ids import ID_MAX, UID_MAX

VERSION = 1

Action = Literal["run", "hold", "cancel"]


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """First frame of the plug-in on each connection.

    `slurm` is the version of slurmctld, or `prolog` from a prolog_client: its connection is for one
    job.
    """

    version: int
    slurm: str
    cluster: str

    @property
    def is_for_one_job(self) -> bool:
        return self.slurm == "prolog"


class PluginMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message of the plug-in about a run.

    `number` identifies the message, also on a later connection. `limit_seconds` is None for no
    limit; times are seconds since 1970. `array` is (array job id, task), `het` (leader's job id,
    component). `billing` and `tres` are as Slurm computes and writes them. The owner chooses `name`
    freely. `resized` is the time of the last change of the run's resources, None for none.
    """

    number: int
    run: Run
    uid: int
    gid: int
    account: str = ""
    partition: str = ""
    qos: str | None = None
    tres: str = ""
    name: str = ""
    billing: Fraction = Fraction(0)
    limit_seconds: int | None = None
    start: int
    batch: bool
    array: tuple[int, int] | None = None
    het: tuple[int, int] | None = None
    resized: int | None = None
    suspended_seconds: int = 0


class PrologRequest(PluginMessage, frozen=True, kw_only=True):
    """Request to start a run. The agent answers with a Verdict."""


class LimitEvent(PluginMessage, frozen=True, kw_only=True):
    """Time limit and resources of a run that has started; answered by Ack.

    The plug-in also sends one for every running run to an agent that it has just connected to.
    """


class EpilogEvent(PluginMessage, frozen=True, kw_only=True):
    """End of a run; answered by Ack.

    `begun` is False for a run that never started. `exit_status` is that of wait(2).
    """

    end: int
    elapsed_seconds: int
    state: str
    exit_status: int
    begun: bool


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a PrologRequest: `reason` is one word for squeue, `text` one line for the owner.

    `number` is that of the request; 0 until the verdict is sent.
    """

    number: int = 0
    action: Action
    reason: str = ""
    text: str = ""


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledgement: the message with this number is safe and need not be repeated."""

    number: int


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """First frame of the agent."""

    version: int = VERSION


FromPlugin = Greeting | PrologRequest | LimitEvent | EpilogEvent
FromAgent = Welcome | Verdict | Ack


HEADER = 4  # bytes of length before each body
BODY_MAX = 16_384
REASON_MAX, TEXT_MAX = 63, 511  # bytes; the plug-in's buffers hold one more for the final NUL

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONTROL_IN_LINE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_ESCAPED = re.compile(r"[\x00-\x1f\x7f%]")
_HALF_ESCAPE = re.compile(r"%(?![0-9A-F]{2})")
_INTEGER = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?(e[+-][0-9]{1,3})?", re.ASCII)

_REMEDY = f"speak version {VERSION} of the protocol"

KINDS: Mapping[str, type[PrologRequest | LimitEvent | EpilogEvent]] = {
    "prolog": PrologRequest,
    "limit": LimitEvent,
    "epilog": EpilogEvent,
}
WORDS: Mapping[type[PluginMessage], str] = {message: word for word, message in KINDS.items()}

# Keys of the fields. Those in _LARGEST are whole numbers from 0 to that value, others are texts.
_HELLO = frozenset({"version", "slurm", "cluster"})
_REQUIRED = frozenset("number cluster job submitted restart uid gid start batch".split())
_WITH_END = _REQUIRED | frozenset("end elapsed state exit begun".split())
_OPTIONAL = frozenset(
    (
        "account partition qos tres name billing limit array task het component resized suspended"
    ).split()
)
_LARGEST: Mapping[str, int] = {
    **dict.fromkeys(
        "number job submitted restart start limit array task het resized".split(), ID_MAX
    ),
    **dict.fromkeys("component end elapsed suspended exit".split(), ID_MAX),
    "uid": UID_MAX,
    "gid": UID_MAX,
    "batch": 1,
    "begun": 1,
    "version": 65_535,
}


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


def one_line(text: str) -> str:
    """Return the text as one line, cut at a character to what a verdict can carry."""
    line = _CONTROL.sub(" ", text)
    return line.encode("utf-8", "replace")[:TEXT_MAX].decode("utf-8", "ignore")


def parse_integer(text: str, largest: int = ID_MAX) -> int | None:
    """Return the integer that the text is in a frame's notation; None for anything else."""
    return value if _INTEGER.fullmatch(text) and (value := int(text)) <= largest else None


def read_fields(body: bytes) -> tuple[str, dict[str, str]]:
    """Return the word for the kind and the fields of a body, escaped as they are.

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
            text = f"{line[:40]!r} is not a line of a frame"
            raise InvalidInput(text, field="frame", remedy="key=value, each key once")
        fields[key] = value
    return word, fields


def read_values(
    fields: Mapping[str, str], required: Set[str], optional: Set[str] = frozenset()
) -> dict[str, Any]:
    """Return the values of a body's fields: integers for the keys of `_LARGEST`, else texts.

    Args:
        required: keys that it must have.
        optional: keys that it may have.

    Raises:
        InvalidInput: a field is missing, unknown or wrong; the error names its key.
    """
    for key in required - fields.keys():
        raise _missing(key)
    values: dict[str, Any] = {}
    for key, raw in fields.items():
        if key not in required and key not in optional:
            raise InvalidInput(f"{key[:40]!r} is not known here", field="key", remedy=_REMEDY)
        largest = _LARGEST.get(key)
        if largest is None:
            values[key] = _unescape(key, raw) if "%" in raw else raw
        elif (value := parse_integer(raw, largest)) is not None:
            values[key] = value
        else:
            remedy = f"a whole number from 0 to {largest}"
            raise InvalidInput(f"{raw[:40]!r} is not a value of {key}", field=key, remedy=remedy)
    return values


def _missing(key: str) -> InvalidInput:
    return InvalidInput(f"{key} is missing", field=key, remedy="send it once")


def _unescape(key: str, raw: str) -> str:
    if _HALF_ESCAPE.search(raw):
        text = f"{raw[:40]!r} has a % that begins nothing"
        raise InvalidInput(text, field=key, remedy="write % as %25")
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{key} is no UTF-8", field=key, remedy="UTF-8") from None


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
    if word == "hello":
        return Greeting(**read_values(fields, _HELLO))
    if word not in KINDS:
        raise unknown_kind(word, "a plug-in")
    is_epilog = word == "epilog"
    values = read_values(fields, _WITH_END if is_epilog else _REQUIRED, _OPTIONAL)
    run = Run(values["cluster"], values["job"], values["submitted"], values["restart"])
    common = {
        "number": values["number"],
        "run": check_run(run),
        "uid": values["uid"],
        "gid": values["gid"],
        "account": values.get("account", ""),
        "partition": values.get("partition", ""),
        "qos": values.get("qos"),
        "tres": values.get("tres", ""),
        "name": values.get("name", ""),
        "billing": _billing(values.get("billing", "0")),
        "limit_seconds": values.get("limit"),
        "start": values["start"],
        "batch": values["batch"] == 1,
        "array": _pair(values, "array", "task"),
        "het": _pair(values, "het", "component"),
        "resized": values.get("resized"),
        "suspended_seconds": values.get("suspended", 0),
    }
    if not is_epilog:
        return KINDS[word](**common)
    return EpilogEvent(
        **common,
        end=values["end"],
        elapsed_seconds=values["elapsed"],
        state=values["state"],
        exit_status=values["exit"],
        begun=values["begun"] == 1,
    )


def unknown_kind(word: str, sender: str) -> InvalidInput:
    return InvalidInput(f"{word[:40]!r} is not a message of {sender}", field="kind", remedy=_REMEDY)


def _pair(values: Mapping[str, int], first: str, second: str) -> tuple[int, int] | None:
    if first not in values and second not in values:
        return None
    for key in (first, second):
        if key not in values:
            raise _missing(key)
    return values[first], values[second]


def _billing(text: str) -> Fraction:
    if _DECIMAL.fullmatch(text):
        # Nearly all billings are whole, and Fraction reads an int ten times faster than a text.
        return Fraction(int(text)) if text.isdigit() else Fraction(text)
    raise InvalidInput(
        f"{text[:40]!r} is not a billing", field="billing", remedy="a decimal number, not negative"
    )


def salvage(body: bytes, why: InvalidInput) -> UnreadableFrame | None:
    """Return what is needed to answer a body whose decoding failed; None if it has no number."""
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
