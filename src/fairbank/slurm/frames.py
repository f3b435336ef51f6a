"""Frames between the PrEp plug-in and the agent: bytes to values and back, refusing what is not exactly one (decision 0012).

A frame is four bytes of length and a body. A body is a word for its kind, then `key=value` lines in any order, each key once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, get_args
from urllib.parse import unquote_to_bytes

from fairbank.cluster.job import Run, checked_run
from fairbank.slurm.records import (
    VERSION,
    Answer,
    EpilogTold,
    Greeting,
    LimitChanged,
    Noted,
    PrologAsked,
    Question,
    Say,
    Told,
    Verdict,
    Welcome,
)
from fairbank.values.ids import ID_MAX, UID_MAX
from fairbank.values.trouble import Malformed

HEAD = 4
BODY_MAX = 16_384
ANSWER_MAX = 4_096
REASON_MAX, TEXT_MAX = 63, 511  # bytes, as the plug-in keeps them

_KINDS: Mapping[str, type[PrologAsked | LimitChanged | EpilogTold]] = {"prolog": PrologAsked, "limit": LimitChanged, "epilog": EpilogTold}
_WORDS = {kind: word for word, kind in _KINDS.items()}
_SAYS: tuple[Say, ...] = get_args(Say)
_ESCAPE = re.compile(r"[\x00-\x1f\x7f%]")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_CONTROL_OR_LINE_END = re.compile(r"[\x00-\x1f\x7f]")
_HALF_ESCAPE = re.compile(r"%(?![0-9A-F]{2})")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?(e[+-][0-9]{1,3})?", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_:.-]*", re.ASCII)


def bodies(received: bytes, *, most: int = BODY_MAX) -> tuple[list[bytes], bytes]:
    """The whole bodies at the beginning of what was received, and the rest. Raises Malformed for a frame that is too long."""
    found: list[bytes] = []
    begin = 0
    while len(received) - begin >= HEAD:
        length = int.from_bytes(received[begin : begin + HEAD], "big")
        if length > most:
            raise Malformed(f"a frame of {length} bytes", field="frame", remedy=f"at most {most} bytes")
        if len(received) - begin < HEAD + length:
            break
        found.append(received[begin + HEAD : begin + HEAD + length])
        begin += HEAD + length
    return found, received[begin:]


def encode(said: Question | Answer) -> bytes:
    """A frame, head included. Raises Malformed for what does not fit into one."""
    word, fields = _fields(said)
    body = "".join([f"{word}\n", *(f"{key}={_escaped(value)}\n" for key, value in fields)]).encode()
    most = ANSWER_MAX if isinstance(said, Answer) else BODY_MAX
    if len(body) > most:
        raise Malformed(f"a frame of {len(body)} bytes", field="frame", remedy=f"at most {most} bytes")
    return len(body).to_bytes(HEAD, "big") + body


def question(body: bytes) -> Question:
    """What the plug-in says. Raises Malformed for anything else, naming the key."""
    word, fields = _lines(body)
    read: Question
    if word == "hello":
        read = Greeting(version=fields.whole("version", 0, 65_535), slurm=fields.text("slurm"), cluster=fields.text("cluster"))
    elif word in ("prolog", "limit"):
        read = _KINDS[word](**_told(fields))
    elif word == "epilog":
        read = _epilog(fields)
    else:
        raise Malformed(f"{word[:40]!r} is nothing that a plug-in says", field="kind", remedy=f"speak version {VERSION} of the wire")
    fields.all_read()
    return read


def answer(body: bytes) -> Answer:
    """What the agent says. Raises Malformed for anything else, naming the key."""
    word, fields = _lines(body)
    read: Answer
    if word == "hello":
        read = Welcome(version=fields.whole("version", 0, 65_535))
    elif word == "noted":
        read = Noted(number=fields.whole("number"))
    elif word == "verdict":
        read = _verdict(fields)
    else:
        raise Malformed(f"{word[:40]!r} is nothing that an agent says", field="kind", remedy=f"speak version {VERSION} of the wire")
    fields.all_read()
    return read


def shortened(text: str, most: int = TEXT_MAX) -> str:
    """`text` as it may stand in a verdict: one line, cut to `most` bytes at a character."""
    line = _ESCAPE.sub(lambda found: "%" if found[0] == "%" else " ", text)
    return line.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


# ------------------------------------------------------------------ writing


def _fields(said: Question | Answer) -> tuple[str, list[tuple[str, str]]]:
    match said:
        case Greeting():
            return "hello", [("version", str(said.version)), ("slurm", said.slurm), ("cluster", said.cluster)]
        case Welcome():
            return "hello", [("version", str(said.version))]
        case Noted():
            return "noted", [("number", str(said.number))]
        case Verdict():
            return "verdict", list(_verdict_fields(said))
        case _:
            return _WORDS[type(said)], list(_told_fields(said))


def _verdict_fields(said: Verdict) -> Iterator[tuple[str, str]]:
    yield "number", str(said.number)
    yield "say", said.say
    if said.reason:
        yield "reason", _fitting(said.reason, "reason", REASON_MAX, _WORD)
    if said.text:
        yield "text", _fitting(said.text, "text", TEXT_MAX)


def _told_fields(said: Told) -> Iterator[tuple[str, str]]:
    run = said.run
    yield from (("number", str(said.number)), ("cluster", run.cluster), ("job", str(run.job_id)), ("submitted", str(run.submitted)))
    yield from (("restart", str(run.restart)), ("uid", str(said.uid)), ("gid", str(said.gid)), ("account", said.account))
    yield from (("partition", said.partition), ("tres", said.tres), ("billing", _decimal(said.billing)))
    yield from (("start", str(said.start)), ("batch", str(int(said.batch))))
    if said.qos is not None:
        yield "qos", said.qos
    if said.limit_seconds is not None:
        yield "limit", str(said.limit_seconds)
    if said.array is not None:
        yield from zip(("array", "task"), map(str, said.array), strict=True)
    if said.het is not None:
        yield from zip(("het", "component"), map(str, said.het), strict=True)
    if isinstance(said, EpilogTold):
        yield from (("end", str(said.end)), ("elapsed", str(said.elapsed_seconds)), ("suspended", str(said.suspended_seconds)))
        yield from (("state", said.state), ("exit", str(said.exit_status)), ("begun", str(int(said.begun))))


def _decimal(billing: Fraction) -> str:
    """As the plug-in writes a double."""
    return f"{float(billing):.17g}"


def _escaped(value: str) -> str:
    return _ESCAPE.sub(lambda found: f"%{ord(found[0]):02X}", value)


def _fitting(text: str, field: str, most: int, grammar: re.Pattern[str] | None = None) -> str:
    if len(text.encode("utf-8", "replace")) > most or _CONTROL_OR_LINE_END.search(text) or (grammar and not grammar.fullmatch(text)):
        raise Malformed(f"{text[:40]!r} is no {field} for a verdict", field=field, remedy=f"one line of at most {most} bytes")
    return text


# ------------------------------------------------------------------ reading


class _Fields:
    """The lines of a body, each to be read once."""

    def __init__(self, lines: dict[str, str]) -> None:
        self._lines = lines

    def __contains__(self, key: str) -> bool:
        return key in self._lines

    def text(self, key: str, default: str | None = None) -> str:
        raw = self._lines.pop(key, None)
        if raw is None:
            if default is None:
                raise Malformed(f"{key} is missing", field=key, remedy="say it once")
            return default
        if "%" not in raw:
            return raw
        if _HALF_ESCAPE.search(raw):
            raise Malformed(f"{raw[:40]!r} has a % that begins nothing", field=key, remedy="write % as %25")
        try:
            return unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            raise Malformed(f"{key} is no UTF-8", field=key, remedy="UTF-8") from None

    def whole(self, key: str, low: int = 0, high: int = ID_MAX) -> int:
        raw = self._lines.pop(key, None)
        if raw is None:
            raise Malformed(f"{key} is missing", field=key, remedy="say it once")
        if _WHOLE.fullmatch(raw) and low <= (number := int(raw)) <= high:
            return number
        raise Malformed(f"{raw[:40]!r} is no {key}", field=key, remedy=f"a whole number from {low} to {high}")

    def pair(self, first: str, second: str) -> tuple[int, int] | None:
        if first in self or second in self:
            return self.whole(first), self.whole(second)
        return None

    def all_read(self) -> None:
        for key in self._lines:
            raise Malformed(f"{key[:40]!r} is not known here", field="key", remedy=f"speak version {VERSION} of the wire")


def _lines(body: bytes) -> tuple[str, _Fields]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Malformed("a frame that is no UTF-8", field="frame", remedy="UTF-8") from None
    word, *lines = text.split("\n")
    if not lines or lines.pop() != "":
        raise Malformed("a frame that does not end with a line feed", field="frame", remedy="end each line")
    found: dict[str, str] = {}
    controls = _CONTROL.search(text) is not None
    for line in lines:
        key, equals, value = line.partition("=")
        if not equals or not key or key in found or (controls and _CONTROL.search(line)):
            raise Malformed(f"{line[:40]!r} is no line of a frame", field="frame", remedy="key=value, each key once")
        found[key] = value
    return word, _Fields(found)


def _told(fields: _Fields) -> dict[str, Any]:
    run = Run(fields.text("cluster"), fields.whole("job"), fields.whole("submitted"), fields.whole("restart"))
    return {
        "number": fields.whole("number"),
        "run": checked_run(run),
        "uid": fields.whole("uid", 0, UID_MAX),
        "gid": fields.whole("gid", 0, UID_MAX),
        "account": fields.text("account", ""),
        "partition": fields.text("partition", ""),
        "qos": fields.text("qos") if "qos" in fields else None,
        "tres": fields.text("tres", ""),
        "billing": _billing(fields.text("billing", "0")),
        "limit_seconds": fields.whole("limit") if "limit" in fields else None,
        "start": fields.whole("start"),
        "batch": fields.whole("batch", 0, 1) == 1,
        "array": fields.pair("array", "task"),
        "het": fields.pair("het", "component"),
    }


def _epilog(fields: _Fields) -> EpilogTold:
    return EpilogTold(
        **_told(fields),
        end=fields.whole("end"),
        elapsed_seconds=fields.whole("elapsed"),
        suspended_seconds=fields.whole("suspended"),
        state=fields.text("state"),
        exit_status=fields.whole("exit"),
        begun=fields.whole("begun", 0, 1) == 1,
    )


def _billing(text: str) -> Fraction:
    if _DECIMAL.fullmatch(text):
        return Fraction(int(text)) if text.isdigit() else Fraction(text)  # a tenth of the time for what is usual
    raise Malformed(f"{text[:40]!r} is no billing", field="billing", remedy="a decimal number, not negative")


def _verdict(fields: _Fields) -> Verdict:
    return Verdict(
        number=fields.whole("number"),
        say=_say(fields.text("say")),
        reason=_fitting(fields.text("reason", ""), "reason", REASON_MAX, _WORD),
        text=_fitting(fields.text("text", ""), "text", TEXT_MAX),
    )


def _say(word: str) -> Say:
    for each in _SAYS:
        if each == word:
            return each
    raise Malformed(f"{word[:40]!r} is no verdict", field="say", remedy=", ".join(_SAYS))
