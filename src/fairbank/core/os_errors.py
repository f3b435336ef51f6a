"""Errors of the operating system as Fairbank's errors, with field and remedy."""

from __future__ import annotations

from errno import EACCES, EDQUOT, EEXIST, EISDIR, ENOENT, ENOSPC, ENOTDIR, EPERM, EROFS

from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound

_FULL = frozenset({ENOSPC, EDQUOT})
_NOT_OURS = frozenset({EACCES, EPERM})
_NO_FOLDER = frozenset({EEXIST, ENOTDIR, EISDIR})

MAKE_ROOM = "make room, or name a place on another disk"


def is_full(error: OSError) -> bool:
    """Return whether the disk or a quota is full."""
    return error.errno in _FULL


def translate_os_error(error: OSError, what: str, *, field: str | None = None) -> FairbankError:
    """Return the error to raise for an OSError.

    Args:
        error: the error of the operating system.
        what: the action that failed, such as "cannot write bank.toml".
        field: the option or setting that named the file.
    """
    if is_full(error):
        return FairbankError(f"{what}: the disk is full", field=field, remedy=MAKE_ROOM)
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
        return InvalidInput(
            f"{what}: there is a file in its place, or a folder in that of a file",
            field=field,
            remedy="name another",
        )
    if error.errno == ENOENT:
        return NotFound(
            f"{what}: there is no such place",
            field=field,
            remedy="name one whose folder is there, or can be made",
        )
    return FairbankError(
        f"{what}: {error.strerror or error}",
        field=field,
        remedy="name another place; if none will do, ask who runs this host",
    )
