"""Users and groups of this host. It may not know those of other hosts."""

from __future__ import annotations

import grp
import os
import pwd
from contextlib import suppress
from functools import cache


@cache
def find_uid(user: str) -> int | None:
    """Return the uid of a user, or None."""
    try:
        return pwd.getpwnam(user).pw_uid if user else None
    except (KeyError, ValueError):  # ValueError for a name with a null character
        return None


def find_user(uid: int) -> str | None:
    """Return the name of a user, or None."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return None


def user_name(uid: int) -> str:
    """Return the name of a user, or the number if they have none on this host."""
    return find_user(uid) or str(uid)


def find_gid(group: str) -> int | None:
    """Return the gid of a group, or None."""
    try:
        return grp.getgrnam(group).gr_gid
    except (KeyError, ValueError):
        return None


def groups_of(user: str) -> tuple[str, ...]:
    """Return the names of a user's groups, sorted; none for an unknown user."""
    try:
        primary = pwd.getpwnam(user).pw_gid
    except KeyError:
        return ()
    names = []
    for gid in os.getgrouplist(user, primary):
        with suppress(KeyError):  # a group without a name is in no AllowGroups
            names.append(grp.getgrgid(gid).gr_name)
    return tuple(sorted(names))
