"""Users by name and by number, as this host knows them."""

from __future__ import annotations

from functools import cache

from fairbank.core.errors import Unknown
from fairbank.report.cells import plain


def user_name(uid: object) -> str:
    """The user's name on this host, else the number; nothing for nobody."""
    return _name(uid) if isinstance(uid, int) else ""


@cache
def _name(uid: int) -> str:
    from pwd import getpwuid

    try:
        return getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def uid_of(user: str, field: str = "--user") -> int:
    """The number of a user by name or number. Raises Unknown."""
    if user.isascii() and user.isdigit() and len(user) <= 10:
        return int(user)
    from pwd import getpwnam

    try:
        return getpwnam(user).pw_uid
    except (KeyError, ValueError) as bad:
        raise Unknown(
            f"there is no user {plain(user[:64])!r} on this host",
            field=field,
            remedy="write a name that this host knows, or the number",
        ) from bad
