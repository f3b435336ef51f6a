"""Permission bits of files and directories."""

from __future__ import annotations

from stat import S_ISDIR, S_ISLNK, S_ISVTX


def can_others_change(mode: int) -> bool:
    """Return whether users other than the owner can write a file, or replace files of a directory.

    Args:
        mode: `st_mode` of the file or directory.
    """
    if S_ISLNK(mode) or (S_ISDIR(mode) and mode & S_ISVTX):
        return False  # as /tmp: with the sticky bit, users cannot replace files of others
    return mode & 0o022 != 0
