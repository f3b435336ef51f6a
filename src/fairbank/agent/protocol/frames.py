"""Framing and lines of the plug-in protocol: lengths, keys and escapes."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from fairbank.agent.protocol.messages import VERSION
from fairbank.core.errors import InvalidInput
from fairbank.core.ids import ID_MAX

HEADER = 4  # bytes of length before each body
BODY_MAX = 16_384
AGENT_BODY_MAX = 4_096
REASON_MAX, TEXT_MAX = 63, 511  # bytes; the plug-in's buffers hold one more for the final NUL

_WORD = re.compile(r"[A-Za-z0-9_:.-]*", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONTROL_IN_LINE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_ESCAPED = re.compile(r"[\x00-\x1f\x7f%]")
_HALF_ESCAPE = re.compile(r"%(?![0-9A-F]{2})")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)


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
            raise InvalidInput(
                f"a frame of {length} bytes", field="frame", remedy=f"at most {max_body} bytes"
            )
        if len(received) - begin < HEADER + length:
            break
        bodies.append(received[begin + HEADER : begin + HEADER + length])
        begin += HEADER + length
    return bodies, received[begin:]


def one_line(text: str, max_bytes: int = TEXT_MAX) -> str:
    """Return the text as one line, cut at a character to what a verdict can carry."""
    line = _CONTROL.sub(" ", text)
    return line.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def escape(value: str) -> str:
    """Return the value as it stands in a line of a body."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)


def check_reason(text: str) -> str:
    """Return the text if a verdict can carry it as its reason, or raise InvalidInput."""
    if not _WORD.fullmatch(text):
        raise _unfit(text, "reason", REASON_MAX)
    return check_text(text, "reason", REASON_MAX)


def check_text(text: str, field: str = "text", max_bytes: int = TEXT_MAX) -> str:
    """Return the text if a verdict can carry it, or raise InvalidInput."""
    if len(text.encode("utf-8", "replace")) > max_bytes or _CONTROL.search(text):
        raise _unfit(text, field, max_bytes)
    return text


def _unfit(text: str, field: str, max_bytes: int) -> InvalidInput:
    return InvalidInput(
        f"{text[:40]!r} is no {field} for a verdict",
        field=field,
        remedy=f"one line of at most {max_bytes} bytes",
    )


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
        raise InvalidInput(
            "a frame that does not end with a line feed", field="frame", remedy="end each line"
        )
    fields: dict[str, str] = {}
    # One search over the body instead of one per line: nearly no body has a control character.
    has_controls = _CONTROL_IN_LINE.search(text) is not None
    for line in lines:
        key, equals, value = line.partition("=")
        if not equals or not key or key in fields or (has_controls and _CONTROL.search(line)):
            raise InvalidInput(
                f"{line[:40]!r} is no line of a frame",
                field="frame",
                remedy="key=value, each key once",
            )
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
            raise InvalidInput(
                f"{raw[:40]!r} has a % that begins nothing", field=key, remedy="write % as %25"
            )
        try:
            return unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            raise InvalidInput(f"{key} is no UTF-8", field=key, remedy="UTF-8") from None

    def integer(self, key: str, low: int = 0, high: int = ID_MAX) -> int:
        raw = self._fields.pop(key, None)
        if raw is None:
            raise InvalidInput(f"{key} is missing", field=key, remedy="send it once")
        if (value := parse_integer(raw, low, high)) is None:
            raise InvalidInput(
                f"{raw[:40]!r} is no {key}",
                field=key,
                remedy=f"a whole number from {low} to {high}",
            )
        return value

    def pair(self, first: str, second: str) -> tuple[int, int] | None:
        if first in self or second in self:
            return self.integer(first), self.integer(second)
        return None

    def check_all_taken(self) -> None:
        for key in self._fields:
            raise InvalidInput(
                f"{key[:40]!r} is not known here",
                field="key",
                remedy=f"speak version {VERSION} of the protocol",
            )
