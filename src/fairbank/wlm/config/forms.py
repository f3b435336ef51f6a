"""Accepted forms of numbers, times and words: in words, and as a reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from fairbank.cluster.node import COUNT_MAX
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import U32_MAX, parse_memory
from fairbank.core.submission.arrays import parse_ranges
from fairbank.core.time import parse_duration, show_duration
from fairbank.priority.fairshare.decay import parse_half_life
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.config import split_list


class ValueForm(NamedTuple):
    """Form of a value in words, and its reader: (text, keyword) to the value.

    A reader raises InvalidInput; the words are the remedy of its errors.
    """

    words: str
    read: Callable[[str, str], Any]


UNLIMITED = frozenset({"UNLIMITED", "INFINITE", "-1"})
SHORT_MAX = 65_533
"""Largest number of 16 bits in Slurm's settings."""

_DIGITS = re.compile(r"\d{1,12}", re.ASCII)
_TASK_PERIOD = re.compile(r"(?:task=)?(\d{1,5})", re.ASCII | re.IGNORECASE)


def refuse(text: str, field: str, what: str) -> InvalidInput:
    """Return the error that a value is not accepted."""
    return InvalidInput(f"{words.quote_unknown(text)} {what}", field=field)


def mapped(form: ValueForm, function: Callable[[Any], object]) -> ValueForm:
    """Return the form with another value: that of the function for the form's own."""
    return ValueForm(form.words, lambda text, field: function(form.read(text, field)))


# --- numbers ---


def whole(low: int, high: int, unit: str = "", *, factor: int = 1) -> ValueForm:
    """Return the form of a whole number.

    Args:
        low: lowest accepted number.
        high: highest accepted number.
        unit: its unit, such as minutes.
        factor: number of units of the value in one of these units.
    """

    def read(text: str, field: str) -> int:
        if _DIGITS.fullmatch(text) and low <= int(text) <= high:
            return int(text) * factor
        raise refuse(text, field, f"is not a whole number from {low} to {high}")

    return ValueForm(f"whole number{unit and f' of {unit}'} from {low} to {high}", read)


def or_unlimited(form: ValueForm, others: str = "") -> ValueForm:
    """Return the form with UNLIMITED, whose value is None, and other words for the same."""
    unlimited = UNLIMITED.union(others.split())
    return ValueForm(
        f"{form.words}; UNLIMITED{others and f' or {others}'} for no limit",
        lambda text, field: None if text.upper() in unlimited else form.read(text, field),
    )


def _within(form: ValueForm, low: int, high: int) -> ValueForm:
    def read(text: str, field: str) -> int:
        value: int = form.read(text, field)
        if low <= value <= high:
            return value
        raise refuse(text, field, "is too small" if value < low else "is too large")

    return ValueForm(form.words, read)


def _task_period(text: str, field: str) -> int:
    """Return the period of tasks; those of energy, file systems and networks have no effect."""
    for part in split_list(text):
        if match := _TASK_PERIOD.fullmatch(part):
            return int(match[1])
    raise refuse(text, field, "has no period of task")


def _exit_codes(text: str, field: str) -> frozenset[int]:
    ranges = parse_ranges(text)
    if ranges is None or any(numbers[-1] > 255 for numbers in ranges):
        raise refuse(text, field, "is not a list of exit codes")
    return frozenset(code for numbers in ranges for code in numbers)


COUNT = whole(1, COUNT_MAX)
SECONDS = whole(0, SHORT_MAX, "seconds")
PORT = whole(1, 65_535)
WEIGHT = whole(0, U32_MAX)
DECIMAL = ValueForm("number from 0 to 1000000, such as 0.5", partial(words.amount, most=10**6))
TASK_PERIOD = ValueForm("seconds, such as 30 or task=30; 0 for none", _task_period)
EXIT_CODES = ValueForm("exit codes from 0 to 255, such as 1,5-10", _exit_codes)
MEMORY = _within(
    ValueForm(
        f"MiB from 1 to {COUNT_MAX}, or a number with K, M, G or T",
        lambda text, field: parse_memory(text, field=field),
    ),
    1,
    COUNT_MAX,
)
MEMORY_LIMIT = or_unlimited(MEMORY, "0")

# --- times ---

_TIME = "minutes, h:mm:ss or d-hh:mm:ss"
PERIOD = _within(ValueForm(f"{_TIME}, or 0", lambda text, field: parse_half_life(text)), 0, U32_MAX)
TIME = _within(
    ValueForm(
        f"{_TIME}, at most {show_duration(COUNT_MAX)}",
        lambda text, field: parse_duration(text, field=field),
    ),
    1,
    COUNT_MAX,
)
TIME_LIMIT = or_unlimited(TIME)
TIME_IN_MINUTES = mapped(TIME, lambda seconds: seconds // 60)

# --- words ---


def one_of(accepted: str, refused: str = "", why: str = "") -> ValueForm:
    """Return the form of one of several words, in the case in which they are given here.

    Args:
        accepted: the words.
        refused: words of Slurm that are not accepted.
        why: the reason.
    """
    known = {word.lower(): word for word in accepted.split()}

    def read(text: str, field: str) -> str:
        word = text.lower()
        if word in known:
            return known[word]
        is_refused = word in refused.lower().split()
        raise refuse(text, field, f"is not supported: {why}" if is_refused else "is unknown")

    return ValueForm(f"one of {', '.join(accepted.split())}", read)


def list_of(accepted: str) -> ValueForm:
    """Return the form of several of these words: a frozen set."""
    word = one_of(accepted)
    return ValueForm(
        f"list of {', '.join(accepted.split())}",
        lambda text, field: frozenset(word.read(part, field) for part in split_list(text)),
    )


def switch(no: str, yes: str) -> ValueForm:
    """Return the form of a Boolean."""
    word = one_of(f"{no} {yes} false true")
    return ValueForm(f"{yes} or {no}", lambda text, field: word.read(text, field) in (yes, "true"))


YES_NO = switch("NO", "YES")
ONE_ZERO = switch("0", "1")

# --- names and texts ---


def _path(text: str, field: str) -> str:
    if text.startswith("/") and text.isprintable() and len(text) <= 4_096:
        return text
    raise refuse(text, field, "is not an absolute path")


def read_names(text: str, field: str) -> tuple[str, ...]:
    """Return names with commas between them."""
    return tuple(ids.name(part, field=field) for part in split_list(text))


NAME = ValueForm("name in one line without , = or quotes", words.name)
NAMES = ValueForm("names with commas between them", read_names)
PATH = ValueForm("absolute path", _path)
TEXT = ValueForm("one line of text", lambda text, field: ids.comment(text, field=field))
