"""Grammar of names: projects, accounts, resources, keys, comments. Every entry point checks it."""

from __future__ import annotations

import re

from fairbank.core.errors import InvalidInput

UID_MAX = 2**32 - 2  # the last uid a kernel hands out; 2**32 - 1 means "no user"
JOB_ID_MAX = 2**32 - 1
ID_MAX = 2**53 - 1
COMMENT_MAX = 500
JOB_NAME_MAX = 128
BEARER_MARK = "fbk_"
"""Prefix of every token, so that people and secret scanners recognise one."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_KEY = re.compile(r"[\x21-\x7e]{1,128}", re.ASCII)


def name(text: str, *, field: str = "name") -> str:
    """Check the name of a Unix group, account, cluster, partition or QOS.

    Raises:
        InvalidInput: the text is not a name; the error names `field`.
    """
    if is_name(text):
        return text
    raise InvalidInput(
        f"{text[:64]!r} is not a name",
        field=field,
        remedy="start with a letter or _, then letters, digits, _ . -; at most 64 characters",
    )


def is_name(text: str) -> bool:
    """Return whether the text is a name."""
    return _NAME.fullmatch(text) is not None


def kind(text: str, *, field: str = "resource") -> str:
    """Check the name of a resource or category: a lower-case word. Raises InvalidInput, naming
    `field`.
    """
    if _KIND.fullmatch(text):
        return text
    raise InvalidInput(
        f"{text[:64]!r} is not a {field}",
        field=field,
        remedy="a lower-case letter, then letters, digits, _ or -; at most 32 characters",
    )


def key(text: str, *, field: str = "key") -> str:
    """Check an idempotency key: printable ASCII without blanks. Raises InvalidInput."""
    if _KEY.fullmatch(text):
        return text
    raise InvalidInput(
        f"{text[:64]!r} is not an idempotency key",
        field=field,
        remedy="1 to 128 printable ASCII characters without blanks",
    )


def comment(text: str, *, field: str = "comment") -> str:
    """Check a comment: one line of printable text. Raises InvalidInput, naming `field`."""
    if len(text) <= COMMENT_MAX and text.isprintable():
        return text
    remedy = f"one line of printable text, at most {COMMENT_MAX} characters"
    raise InvalidInput(
        f"this {field} cannot be kept: it {_fault(text)}", field=field, remedy=remedy
    )


def _fault(text: str) -> str:
    """Return what is wrong with a comment."""
    if len(text) > COMMENT_MAX:
        return f"has {len(text)} characters"
    odd = next(each for each in text if not each.isprintable())
    if odd in "\n\r":
        return "has more than one line"
    return "is no UTF-8" if "\ud800" <= odd <= "\udfff" else f"has the character {odd!a}"


def job_name(text: str, *, field: str = "name") -> str:
    """Check a job name: one line of printable text. Raises InvalidInput, naming `field`."""
    if 0 < len(text) <= JOB_NAME_MAX and text.isprintable():
        return text
    raise InvalidInput(
        f"this {field} cannot be kept",
        field=field,
        remedy=f"one line of printable text, 1 to {JOB_NAME_MAX} characters",
    )


def clean_job_name(text: str) -> str | None:
    """Return a valid job name: cut, with ? for unprintable characters. None if nothing is left."""
    return "".join(each if each.isprintable() else "?" for each in text[:JOB_NAME_MAX]) or None


def reason(text: str, *, field: str = "comment") -> str:
    """Check a mandatory comment, which must not be blank. Raises InvalidInput, naming `field`."""
    if text.strip():
        return comment(text, field=field)
    raise InvalidInput(f"this {field} says nothing", field=field, remedy="say in a few words why")


def uid(number: int, *, field: str = "uid") -> int:
    """Check a Unix user or group id. Raises InvalidInput, naming `field`."""
    if 0 <= number <= UID_MAX:
        return number
    raise InvalidInput(
        f"{number} is not a Unix id", field=field, remedy=f"a whole number from 0 to {UID_MAX}"
    )
