"""What frames are made of: how long they are, what they are called, and how a text stands in them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairbank.core.errors import InvalidInput
from fairbank.slurm.records import EpilogTold, LimitChanged, PrologAsked

KINDS: Mapping[str, type[PrologAsked | LimitChanged | EpilogTold]] = {
    "prolog": PrologAsked,
    "limit": LimitChanged,
    "epilog": EpilogTold,
}

HEAD = 4
BODY_MAX = 16_384
ANSWER_MAX = 4_096
REASON_MAX, TEXT_MAX = 63, 511  # bytes, as the plug-in keeps them
WORD = re.compile(r"[A-Za-z0-9_:.-]*", re.ASCII)
"""What a reason is made of."""

_ESCAPE = re.compile(r"[\x00-\x1f\x7f%]")
_CONTROL_OR_LINE_END = re.compile(r"[\x00-\x1f\x7f]")


def bodies(received: bytes, *, most: int = BODY_MAX) -> tuple[list[bytes], bytes]:
    """The whole bodies at the beginning of what was received, and the rest. Raises InvalidInput for a frame that is too long."""
    found: list[bytes] = []
    begin = 0
    while len(received) - begin >= HEAD:
        length = int.from_bytes(received[begin : begin + HEAD], "big")
        if length > most:
            raise InvalidInput(
                f"a frame of {length} bytes", field="frame", remedy=f"at most {most} bytes"
            )
        if len(received) - begin < HEAD + length:
            break
        found.append(received[begin + HEAD : begin + HEAD + length])
        begin += HEAD + length
    return found, received[begin:]


def shortened(text: str, most: int = TEXT_MAX) -> str:
    """`text` as it may stand in a verdict: one line, cut to `most` bytes at a character."""
    line = _ESCAPE.sub(lambda found: "%" if found[0] == "%" else " ", text)
    return line.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def escaped(value: str) -> str:
    """`value` as it stands in a line of a body."""
    return _ESCAPE.sub(lambda found: f"%{ord(found[0]):02X}", value)


def fitting(text: str, field: str, most: int, grammar: re.Pattern[str] | None = None) -> str:
    """`text`, which a verdict can hold as this field. Raises InvalidInput for what it cannot."""
    if (
        len(text.encode("utf-8", "replace")) > most
        or _CONTROL_OR_LINE_END.search(text)
        or (grammar and not grammar.fullmatch(text))
    ):
        raise InvalidInput(
            f"{text[:40]!r} is no {field} for a verdict",
            field=field,
            remedy=f"one line of at most {most} bytes",
        )
    return text
