"""Bodies of frames as values."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, get_args

from fairbank.cluster.job import Run, checked_run
from fairbank.core.errors import InvalidInput
from fairbank.core.ids import UID_MAX
from fairbank.slurm.frames.grammar import KINDS, REASON_MAX, TEXT_MAX, WORD, fitting
from fairbank.slurm.frames.lines import Lines, read_lines
from fairbank.slurm.records import (
    VERSION,
    Answer,
    EpilogTold,
    Greeting,
    Noted,
    Question,
    Say,
    Verdict,
    Welcome,
)

_SAYS: tuple[Say, ...] = get_args(Say)
_DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?(e[+-][0-9]{1,3})?", re.ASCII)


def question(body: bytes) -> Question:
    """What the plug-in says. Raises InvalidInput for anything else, naming the key."""
    word, fields = read_lines(body)
    read: Question
    if word == "hello":
        read = Greeting(
            version=fields.whole("version", 0, 65_535),
            slurm=fields.text("slurm"),
            cluster=fields.text("cluster"),
        )
    elif word in ("prolog", "limit"):
        read = KINDS[word](**_told(fields))
    elif word == "epilog":
        read = _epilog(fields)
    else:
        raise InvalidInput(
            f"{word[:40]!r} is nothing that a plug-in says",
            field="kind",
            remedy=f"speak version {VERSION} of the wire",
        )
    fields.all_read()
    return read


def answer(body: bytes) -> Answer:
    """What the agent says. Raises InvalidInput for anything else, naming the key."""
    word, fields = read_lines(body)
    read: Answer
    if word == "hello":
        read = Welcome(version=fields.whole("version", 0, 65_535))
    elif word == "noted":
        read = Noted(number=fields.whole("number"))
    elif word == "verdict":
        read = _verdict(fields)
    else:
        raise InvalidInput(
            f"{word[:40]!r} is nothing that an agent says",
            field="kind",
            remedy=f"speak version {VERSION} of the wire",
        )
    fields.all_read()
    return read


def _told(fields: Lines) -> dict[str, Any]:
    run = Run(
        fields.text("cluster"),
        fields.whole("job"),
        fields.whole("submitted"),
        fields.whole("restart"),
    )
    return {
        "number": fields.whole("number"),
        "run": checked_run(run),
        "uid": fields.whole("uid", 0, UID_MAX),
        "gid": fields.whole("gid", 0, UID_MAX),
        "account": fields.text("account", ""),
        "partition": fields.text("partition", ""),
        "qos": fields.text("qos") if "qos" in fields else None,
        "tres": fields.text("tres", ""),
        "name": fields.text("name", ""),
        "billing": _billing(fields.text("billing", "0")),
        "limit_seconds": fields.whole("limit") if "limit" in fields else None,
        "start": fields.whole("start"),
        "batch": fields.whole("batch", 0, 1) == 1,
        "array": fields.pair("array", "task"),
        "het": fields.pair("het", "component"),
    }


def _epilog(fields: Lines) -> EpilogTold:
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
        return (
            Fraction(int(text)) if text.isdigit() else Fraction(text)
        )  # a tenth of the time for what is usual
    raise InvalidInput(
        f"{text[:40]!r} is no billing", field="billing", remedy="a decimal number, not negative"
    )


def _verdict(fields: Lines) -> Verdict:
    return Verdict(
        number=fields.whole("number"),
        say=_say(fields.text("say")),
        reason=fitting(fields.text("reason", ""), "reason", REASON_MAX, WORD),
        text=fitting(fields.text("text", ""), "text", TEXT_MAX),
    )


def _say(word: str) -> Say:
    for each in _SAYS:
        if each == word:
            return each
    raise InvalidInput(f"{word[:40]!r} is no verdict", field="say", remedy=", ".join(_SAYS))
