"""Single values of output: names, numbers, instants, durations, states, TRES.

A reader takes the text of a cell and the name of its column. It raises InvalidInput with that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import TypeVar

from fairbank.cluster.node import Gpus
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.gres import GPU, parse_gres
from fairbank.core.slurm_numbers import TRES_MAX
from fairbank.core.time import DAY, LAST_INSTANT, parse_instant
from fairbank.core.tres import parse_counts
from fairbank.report.slurm.notation import (
    INVALID,
    NO_DEFAULT,
    NONE,
    NOT_APPLICABLE,
    NOT_SET,
    NULL,
    PARTITION_LIMIT,
    UNKNOWN,
    UNLIMITED,
    UNLIMITED_WORDS,
)

V = TypeVar("V")
Reader = Callable[[str, str], V]
"""Reader of a cell: (text, name of the column) to the value."""

UNSET = frozenset({"", NULL, NOT_APPLICABLE, NO_DEFAULT})
"""Texts of what is not set."""
_NEVER = UNSET | {UNKNOWN, NONE}
_NO_LIMIT = UNSET | UNLIMITED_WORDS | {PARTITION_LIMIT, NOT_SET}
_STATE = re.compile(r"([A-Z][A-Z_]{0,31})(?:\+| by \d{1,10})?", re.ASCII)
_LENGTH = re.compile(r"(?:(\d{1,6})-)?(\d{1,9}):(\d\d):(\d\d)", re.ASCII)
_LIMIT = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,2}):)?(\d{1,2}):(\d\d)", re.ASCII)
_BILLING = re.compile(r"(?:^|,)billing=(\d{1,18})(?:,|$)", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,30}(\.\d{1,20})?(e[+-]\d{2,3})?|inf", re.ASCII)


@lru_cache(maxsize=256)  # a long queue waits for few reasons
def reason(text: str) -> str:
    """Return why a job waits in Slurm's word, where scontrol and squeue print a sentence.

    >>> reason("ReqNodeNotAvail,_Reserved_for_maintenance")
    'ReqNodeNotAvail'
    >>> reason("launch failed requeued held")
    'JobLaunchFailure'
    """
    sentence = text.replace("_", " ")
    for pattern, word in _SENTENCES:
        if pattern.match(sentence):
            return word
    return text.partition(",")[0].replace(" ", "_")


_SENTENCES = (
    (re.compile(r"Nodes required for job are"), "Resources"),
    (re.compile(r"Job's account not"), "AccountNotAllowed"),
    (re.compile(r"uid \d+ not in group permitted"), "AccountNotAllowed"),
    (re.compile(r"Job's QOS not"), "QOSNotAllowed"),
    (re.compile(r"(launch|user env retrieval) failed requeued held"), "JobLaunchFailure"),
    (re.compile(r"launch failure limit exceeded requeued held"), "JobHoldMaxRequeue"),
    (re.compile(r"job requeued in (held|special exit) state"), "JobHeldUser"),
    (re.compile(r"RaisedSignal:"), "RaisedSignal"),
)
"""Sentences that slurmctld gives instead of its own word."""


def optional(reader: Reader[V]) -> Reader[V | None]:
    """Return the reader with None for an empty cell."""
    return lambda text, field: reader(text, field) if text else None


def blank_or(reader: Reader[str]) -> Reader[str]:
    """Return the reader with an empty text for an empty cell."""
    return lambda text, field: text and reader(text, field)


def any_text(text: str, field: str) -> str:
    """Return the cell as it is."""
    return text


def name(text: str, field: str) -> str:
    """Return the name of an account, partition or QOS."""
    return ids.name(text, field=field)


name_or_none = optional(name)
name_or_blank = blank_or(name)


def names(text: str, field: str) -> tuple[str, ...]:
    """Return names with commas between them."""
    return tuple(name(part, field) for part in text.split(","))


def names_or_none(text: str, field: str) -> tuple[str, ...]:
    """Return names with commas between them, or none."""
    return names(text, field) if text else ()


def match_cell(form: re.Pattern[str], text: str, field: str, fault: str) -> re.Match[str]:
    """Match a whole cell. Raises InvalidInput if it has another form.

    The fault is the message after the quoted cell, such as "is not a size".
    """
    match = form.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{quote_unknown(text)} {fault}", field=field)
    return match


def user(text: str, field: str) -> str:
    """Return a user's name, which may have a domain."""
    return ids.name(text, field=field)


def number(text: str, field: str, most: int = 2**53 - 1) -> int:
    """Return a whole number from 0. Raises InvalidInput.

    By default the largest is that which a float holds with all smaller ones.
    """
    if _WHOLE.fullmatch(text) and int(text) <= most:
        return int(text)
    raise InvalidInput(f"{quote_unknown(text)} is not a whole number up to {most}", field=field)


def job_id(text: str, field: str) -> int:
    """Return the number of a job."""
    return number(text, field, most=ids.JOB_ID_MAX)


def instant(text: str, field: str) -> int | None:
    """Return an instant in UTC, or None for one that has not come."""
    return None if text in _NEVER else parse_instant(text, field=field)


def epoch(seconds: int, field: str) -> int | None:
    """Return seconds since 1970, or None for 0, which means never."""
    if 0 <= seconds <= LAST_INSTANT:
        return seconds or None
    raise InvalidInput(f"{seconds} is not an instant", field=field)


def required_instant(at: int | None, field: str) -> int:
    """Return an instant that must be known."""
    if at is None:
        raise InvalidInput("is not known", field=field)
    return at


def known_instant(text: str, field: str) -> int:
    """Return an instant in UTC that must be known."""
    return required_instant(instant(text, field), field)


def minutes(text: str, field: str) -> int | None:
    """Return a limit in minutes as seconds, or None without a finite limit."""
    return None if text in _NO_LIMIT else number(text, field, most=10**9) * 60


def length_minutes(text: str, field: str) -> int:
    """Return `1-00:30:00` in whole minutes, or 0 without a finite limit."""
    return (finite_length(text, field) or 0) // 60


def finite_length(text: str, field: str) -> int | None:
    """Return `1-00:30:00` in seconds, or None without a finite limit."""
    return None if text in _NO_LIMIT else length_seconds(text, field)


def length_seconds(text: str, field: str) -> int:
    """Return `1-00:30:00` in seconds."""
    return _seconds_in(_LENGTH, text, field)


@lru_cache(maxsize=256)  # and asks for few limits
def limit_seconds(text: str, field: str) -> int | None:
    """Return `5:00` or `1-00:00:00`, as squeue prints limits, in seconds; None without one."""
    return None if text in (UNLIMITED, NOT_SET, INVALID) else _seconds_in(_LIMIT, text, field)


def _seconds_in(form: re.Pattern[str], text: str, field: str) -> int:
    match = form.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{quote_unknown(text)} is not a length of time",
            field=field,
            remedy="Slurm writes 7-00:00:00",
        )
    days, hours, mins, seconds = (int(part or 0) for part in match.groups())
    return days * DAY + hours * 3600 + mins * 60 + seconds


def state(text: str, field: str) -> str:
    """Return the bare state. sacct also prints `CANCELLED by 1000`, and cuts `CANCELLED+`."""
    return match_cell(_STATE, text, field, "is not a job state")[1]


def tres(text: str, field: str) -> str:
    """Return the text once it is known to be TRES, without `billing`.

    The billing is rounded; the bank prices the other TRES.
    """
    kept = ",".join(part for part in text.split(",") if part and not part.startswith("billing="))
    if len(kept) > TRES_MAX:
        raise InvalidInput(f"{len(kept)} characters are too many", field=field)
    if kept:
        _check_tres(kept, field)
    return kept


def billing(text: str) -> int | None:
    """Return the billing units among TRES; None if they are not there."""
    match = _BILLING.search(text)
    return None if match is None else int(match[1])


@lru_cache(maxsize=4_096)
def _check_tres(text: str, field: str) -> None:
    """Check the TRES. Cached, since few of many jobs differ in them."""
    parse_counts(text, field=field)


def gpus(text: str, field: str) -> tuple[Gpus, ...]:
    """Return the GPUs of GRES such as `gpu:a100:2(IDX:0-1),lscratch:200`, by type."""
    counts: dict[str, int] = {}
    for gres in parse_gres(text, field=field) if text else ():
        if gres.name == GPU:
            counts[gres.type] = counts.get(gres.type, 0) + gres.number
    return tuple(Gpus(kind, count) for kind, count in sorted(counts.items()) if count)


def licenses(text: str, field: str) -> dict[str, int]:
    """Return the number of each license of `matlab:2,ansys`."""
    counts: dict[str, int] = {}
    for part in filter(None, re.split(r"[,;|]", text)):
        license, _, count = part.partition(":")
        counts[license] = number(count, field) if count else 1
    return counts


def quote_unknown(text: str) -> str:
    """Return a piece of unknown text, safe to print."""
    return ascii(text[:40])


def decimal(text: str, field: str) -> float:
    """Return a number as C prints it: `0.250000`, `-3`, `1.4688e+03`, `inf`. `nan` is refused."""
    return float(match_cell(_DECIMAL, text, field, "is not a figure")[0])


def amount(text: str, field: str, most: float = inf) -> float:
    """Return a number from 0, which may have decimals. Raises InvalidInput."""
    if 0 <= (number := decimal(text, field)) <= most:
        return number
    raise InvalidInput(
        f"{quote_unknown(text)} is not a figure from 0{'' if most == inf else f' to {most:g}'}",
        field=field,
    )
