"""What the operating system refuses, as the bank's own troubles: with the field and a remedy that fits, not with a number of an error."""

from __future__ import annotations

from errno import EACCES, EDQUOT, EEXIST, EISDIR, ENOENT, ENOSPC, ENOTDIR, EPERM, EROFS

from fairbank.core.errors import Forbidden, Malformed, Trouble, Unknown

_FULL = frozenset({ENOSPC, EDQUOT})
_NOT_OURS = frozenset({EACCES, EPERM})
_NO_FOLDER = frozenset({EEXIST, ENOTDIR, EISDIR})

MAKE_ROOM = "make room, or name a place on another disk"


def is_full(error: OSError) -> bool:
    """Whether there was no room, on the disk or within a quota."""
    return error.errno in _FULL


def translate_os_error(error: OSError, what: str, *, field: str | None = None) -> Trouble:
    """`what` could not be done, and why: Forbidden, Malformed or Unknown where that fits, else a Trouble as such."""
    if is_full(error):
        return Trouble(f"{what}: the disk is full", field=field, remedy=MAKE_ROOM)
    if error.errno == EROFS:
        return Forbidden(
            f"{what}: that file system is read-only",
            field=field,
            remedy="name a place that can be written",
        )
    if error.errno in _NOT_OURS:
        return Forbidden(
            f"{what}: you may not write there",
            field=field,
            remedy="name a place of your own, or run this as the user whose it is",
        )
    if error.errno in _NO_FOLDER:
        return Malformed(
            f"{what}: there is a file in its place, or a folder in that of a file",
            field=field,
            remedy="name another",
        )
    if error.errno == ENOENT:
        return Unknown(
            f"{what}: there is no such place",
            field=field,
            remedy="name one whose folder is there, or can be made",
        )
    return Trouble(
        f"{what}: {error.strerror or error}",
        field=field,
        remedy="name another place; if none will do, ask who runs this host",
    )
