"""The lines of a body: `key=value`, each key once and each to be read once."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from fairbank.core.errors import InvalidInput
from fairbank.core.ids import ID_MAX
from fairbank.slurm.records import VERSION

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_HALF_ESCAPE = re.compile(r"%(?![0-9A-F]{2})")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)


def whole_number(text: str, low: int = 0, high: int = ID_MAX) -> int | None:
    """The number that `text` is in a frame's way of writing; None for anything else."""
    return number if _WHOLE.fullmatch(text) and low <= (number := int(text)) <= high else None


def read_lines(body: bytes) -> tuple[str, Lines]:
    """The word for the kind, and the lines after it. Raises InvalidInput for a body that is not made so."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidInput("a frame that is no UTF-8", field="frame", remedy="UTF-8") from None
    word, *lines = text.split("\n")
    if not lines or lines.pop() != "":
        raise InvalidInput(
            "a frame that does not end with a line feed", field="frame", remedy="end each line"
        )
    found: dict[str, str] = {}
    controls = _CONTROL.search(text) is not None
    for line in lines:
        key, equals, value = line.partition("=")
        if not equals or not key or key in found or (controls and _CONTROL.search(line)):
            raise InvalidInput(
                f"{line[:40]!r} is no line of a frame",
                field="frame",
                remedy="key=value, each key once",
            )
        found[key] = value
    return word, Lines(found)


class Lines:
    """What a body says, by key. All of these raise InvalidInput, naming the key."""

    def __init__(self, lines: dict[str, str]) -> None:
        self._lines = lines

    def __contains__(self, key: str) -> bool:
        return key in self._lines

    def text(self, key: str, default: str | None = None) -> str:
        raw = self._lines.pop(key, None)
        if raw is None:
            if default is None:
                raise InvalidInput(f"{key} is missing", field=key, remedy="say it once")
            return default
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

    def whole(self, key: str, low: int = 0, high: int = ID_MAX) -> int:
        raw = self._lines.pop(key, None)
        if raw is None:
            raise InvalidInput(f"{key} is missing", field=key, remedy="say it once")
        if (number := whole_number(raw, low, high)) is not None:
            return number
        raise InvalidInput(
            f"{raw[:40]!r} is no {key}", field=key, remedy=f"a whole number from {low} to {high}"
        )

    def pair(self, first: str, second: str) -> tuple[int, int] | None:
        if first in self or second in self:
            return self.whole(first), self.whole(second)
        return None

    def all_read(self) -> None:
        for key in self._lines:
            raise InvalidInput(
                f"{key[:40]!r} is not known here",
                field="key",
                remedy=f"speak version {VERSION} of the wire",
            )
