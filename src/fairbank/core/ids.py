"""Grammar of names: projects, accounts, resources, keys, comments. Every entry point checks it."""

from __future__ import annotations

import re

from fairbank.core.errors import InvalidInput

UID_MAX = 2**32 - 2  # the last uid a kernel hands out; 2**32 - 1 means "no user"
OVERFLOW_UID = 65_534
"""Linux's overflow uid: stands for a user who has no uid here."""
JOB_ID_MAX = 2**32 - 1
ID_MAX = 2**53 - 1
NAME_MAX = 255
"""Bytes of UTF-8; the columns of slurmdbd hold no more (tinytext)."""
NAME_PATTERN = (
    r"""^[^\x00-\x20\x7f\ufffd,="'+-]([^\x00-\x1f\x7f\ufffd,="']*[^\x00-\x20\x7f\ufffd,="'])?$"""
)
"""Names as wide as Slurm's. Its commands take `,` `=` and quotes as separators, and a leading `+`
or `-` as an operator. U+FFFD stands for bytes that are no UTF-8, of any name.
"""
COMMENT_MAX = 500
JOB_NAME_MAX = 128
BEARER_MARK = "fbk_"
"""Prefix of every token, so that people and secret scanners recognise one."""

_NAME = re.compile(NAME_PATTERN)
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_KEY = re.compile(r"[\x21-\x7e]{1,128}", re.ASCII)


def known_uid(uid: int) -> int | None:
    """Return the uid of the user of a sum of use; None if no user is known."""
    return None if uid == OVERFLOW_UID else uid


def _refuse(message: str, field: str, remedy: str) -> InvalidInput:
    return InvalidInput(message, field=field, remedy=remedy)


def name(text: str, *, field: str = "name") -> str:
    """Check the name of a Unix group or user, account, cluster, partition or QOS.

    Raises:
        InvalidInput: the text is not a name; the error names `field`. So do the next functions.
    """
    if is_name(text):
        return text
    remedy = (
        f"1 to {NAME_MAX} bytes of printable text without , = or quotes,"
        " no blank at its ends, no + or - at its start"
    )
    raise _refuse(f"{text[:64]!r} is not a name", field, remedy)


def is_name(text: str) -> bool:
    """Return whether the text is a name."""
    # The lengths first: they bound the time of the rest.
    return (
        len(text) <= NAME_MAX
        and text.isprintable()
        and _NAME.fullmatch(text) is not None
        and (text.isascii() or len(text.encode()) <= NAME_MAX)
    )


def cluster(text: str, *, field: str = "cluster", noun: str = "cluster") -> str:
    """Check the name of a cluster, or as `noun` says of a storage: a name without blanks, / : or @.

    slurmdbd has tables of this name, run ids (`cluster/job@submitted`) and scopes
    (`agent:cluster`) contain it.
    """
    if is_name(text) and not set(text) & set(" /@:"):
        return text
    raise _refuse(f"{text[:64]!r} is not the name of a {noun}", field, _one_word(", = / : @"))


def reservation(text: str, *, field: str = "reservation") -> str:
    """Check the name of a reservation of Slurm: a name without blanks, as `scontrol` prints it
    between others.
    """
    if is_name(text) and " " not in text:
        return text
    raise _refuse(f"{text[:64]!r} is not the name of a reservation", field, _one_word(", ="))


def _one_word(without: str) -> str:
    """Return the form of a name without blanks and these characters."""
    return (
        f"1 to {NAME_MAX} bytes of printable text without blanks {without} or quotes,"
        " no + or - at its start"
    )


def kind(text: str, *, field: str = "resource", noun: str = "resource") -> str:
    """Check the name of a resource, or as `noun` says of a category: a lower-case word."""
    if _KIND.fullmatch(text):
        return text
    remedy = "a lower-case letter, then letters, digits, _ or -; at most 32 characters"
    raise _refuse(f"{text[:64]!r} is not a {noun}", field, remedy)


def key(text: str, *, field: str = "key") -> str:
    """Check an idempotency key: printable ASCII without blanks."""
    if _KEY.fullmatch(text):
        return text
    remedy = "1 to 128 printable ASCII characters without blanks"
    raise _refuse(f"{text[:64]!r} is not an idempotency key", field, remedy)


def comment(text: str, *, field: str = "comment") -> str:
    """Check a comment: one line of printable text."""
    if len(text) > COMMENT_MAX:
        fault = f"has {len(text)} characters"
    elif text.isprintable():
        return text
    else:
        odd = next(character for character in text if not character.isprintable())
        if odd in "\n\r":
            fault = "has more than one line"
        else:
            # Bytes that are no UTF-8 arrive as lone surrogates.
            is_surrogate = "\ud800" <= odd <= "\udfff"
            fault = "is no UTF-8" if is_surrogate else f"has the character {odd!a}"
    remedy = f"one line of printable text, at most {COMMENT_MAX} characters"
    raise _refuse(f"this {field} cannot be kept: it {fault}", field, remedy)


def job_name(text: str) -> str:
    """Check a job name: one line of printable text."""
    if 0 < len(text) <= JOB_NAME_MAX and text.isprintable():
        return text
    remedy = f"one line of printable text, 1 to {JOB_NAME_MAX} characters"
    raise _refuse("this name cannot be kept", "name", remedy)


def clean_job_name(text: str) -> str | None:
    """Return a valid job name: cut, with ? for unprintable characters. None if nothing is left."""
    return (
        "".join(character if character.isprintable() else "?" for character in text[:JOB_NAME_MAX])
        or None
    )


def reason(text: str, *, field: str = "comment") -> str:
    """Check a mandatory comment, which must not be blank."""
    if text.strip():
        return comment(text, field=field)
    raise _refuse(f"the {field} is empty", field, "give the reason in a few words")


def uid(number: int, *, field: str = "uid") -> int:
    """Check a Unix user or group id."""
    if 0 <= number <= UID_MAX:
        return number
    raise _refuse(f"{number} is not a Unix id", field, f"a whole number from 0 to {UID_MAX}")


def user_uid(number: int, *, field: str = "uid") -> int:
    """Check the uid of one user: of OVERFLOW_UID are all users who have none here."""
    if number != OVERFLOW_UID:
        return uid(number, field=field)
    raise _refuse(
        f"uid {OVERFLOW_UID} stands for users who have no uid", field, "give the uid of the user"
    )
