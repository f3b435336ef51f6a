"""Operating system: its errors as Fairbank's errors, and permission bits."""

from __future__ import annotations

from collections.abc import Mapping
from errno import EACCES, EDQUOT, EEXIST, EISDIR, ENOENT, ENOSPC, ENOTDIR, EPERM, EROFS
from stat import S_ISDIR, S_ISVTX

from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound

FREE_DISK_SPACE = "free disk space, or name a path on another disk"

_FULL = (FairbankError, "the disk is full", FREE_DISK_SPACE)
_NOT_OURS = (
    Forbidden,
    "you may not write there",
    "name a path in a directory of your own, or run the command as the owner of this one",
)
_IN_THE_WAY = (
    InvalidInput,
    "a file of that name is in the way, or a directory where a file is expected",
    "name another path",
)
_ERRORS: Mapping[int | None, tuple[type[FairbankError], str, str]] = {
    ENOSPC: _FULL,
    EDQUOT: _FULL,
    EROFS: (
        Forbidden,
        "that file system is read-only",
        "name a path on a file system that can be written",
    ),
    EACCES: _NOT_OURS,
    EPERM: _NOT_OURS,
    EEXIST: _IN_THE_WAY,
    ENOTDIR: _IN_THE_WAY,
    EISDIR: _IN_THE_WAY,
    ENOENT: (NotFound, "no such file or directory", "name a path in a directory that exists"),
}


def is_full(error: OSError) -> bool:
    """Return whether the disk or a quota is full."""
    return _ERRORS.get(error.errno) is _FULL


def translate_os_error(error: OSError, what: str, *, field: str | None = None) -> FairbankError:
    """Return the error to raise for an OSError.

    Args:
        error: the error of the operating system.
        what: the action that failed, such as "cannot write bank.toml".
        field: the option or setting that named the file.
    """
    other = "name another place; if none will do, ask who runs this host"
    kind, why, remedy = _ERRORS.get(
        error.errno, (FairbankError, error.strerror or str(error), other)
    )
    translated = kind(f"{what}: {why}", field=field, remedy=remedy)
    translated.is_disk_full = is_full(error)
    return translated


def can_others_change(mode: int) -> bool:
    """Return whether users other than the owner can write a file, or replace files of a directory.

    Args:
        mode: `st_mode` of the file or directory.
    """
    if S_ISDIR(mode) and mode & S_ISVTX:
        return False  # as /tmp: with the sticky bit, users cannot replace files of others
    return mode & 0o022 != 0
