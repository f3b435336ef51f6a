"""Time zone, users and signals of this host."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta, tzinfo
from functools import cache

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.ids import OVERFLOW_UID
from fairbank.report.cells import plain

_USERS = re.compile(r"(\busers? )(\d{1,10}(?:, \d{1,10})*)\b", re.ASCII)
_COMMAND = re.compile(r"(fairbank (?:alloc cap|project add-user) \S+ )(\d{1,10})\b", re.ASCII)


class Local(tzinfo):
    """Time zone of the system. `zoneinfo` needs its name, which the system does not tell."""

    def fromutc(self, at: datetime) -> datetime:
        epoch = datetime(1970, 1, 1)  # noqa: DTZ001 (local time)
        seconds = int((at.replace(tzinfo=None) - epoch).total_seconds())
        wall = time.localtime(seconds)
        fold = wall.tm_isdst == 0 and time.localtime(seconds - 3600).tm_isdst == 1
        return datetime(*wall[:6], tzinfo=self, fold=int(fold))

    def utcoffset(self, at: datetime | None) -> timedelta:
        return timedelta(seconds=self._read(at).tm_gmtoff)

    def dst(self, at: datetime | None) -> timedelta:
        return timedelta(hours=1) if self._read(at).tm_isdst > 0 else timedelta()

    def tzname(self, at: datetime | None) -> str:
        return self._read(at).tm_zone

    def _read(self, at: datetime | None) -> time.struct_time:
        if at is None:
            return time.localtime()
        fields = (at.year, at.month, at.day, at.hour, at.minute, at.second)
        for summer in (0, 1) if at.fold else (1, 0):  # mktime shifts the clock when we guess wrong
            wall = time.localtime(time.mktime((*fields, 0, 0, summer)))
            if wall[:6] == fields:
                break
        return wall


def zone_name() -> str:
    """Return the time zone of TZ or of this host: its name, or an offset such as `+05:30`.

    Raises:
        InvalidInput: the zone has summer time and no name.
    """
    from fairbank.core.time_zone import parse_zone  # zoneinfo, which few commands need

    name = os.environ.get("TZ", "").removeprefix(":")
    if not name:
        name = os.path.realpath("/etc/localtime").rpartition("/zoneinfo/")[2]
    try:
        parse_zone(name)
    except InvalidInput as error:
        if time.daylight:
            raise InvalidInput(
                "the time zone of this host has no name that the bank could use",
                field="TZ",
                remedy="set it by name, such as TZ=Europe/Rome, or use --utc",
            ) from error
        east = time.localtime().tm_gmtoff // 60
        return f"{'-' if east < 0 else '+'}{abs(east) // 60:02}:{abs(east) % 60:02}"
    return name


def user_name(uid: object) -> str:
    """Return the user's name on this host, else the number; an empty string if there is none: for
    None, and for the uid of measured use and of runs whose user has no uid.
    """
    return _name(uid) if isinstance(uid, int) and uid != OVERFLOW_UID else ""


@cache
def _name(uid: int) -> str:
    from fairbank import unix_users  # only answers with users need it

    return unix_users.user_name(uid)


def with_user_names(sentence: str) -> str:
    """Replace the uids of a sentence or remedy of the bank, which knows no names, by names."""
    for pattern in (_USERS, _COMMAND):
        sentence = pattern.sub(
            lambda match: match[1] + re.sub(r"\d+", lambda uid: _name(int(uid[0])), match[2]),
            sentence,
        )
    return sentence


def own_name() -> str:
    """Return the name of the user who runs the command, else the number."""
    return _name(os.geteuid())


def uid_of(user: str, field: str = "--user") -> int:
    """Return the number of a user given by name or number. Raises NotFound."""
    if user.isascii() and user.isdigit() and len(user) <= 10:
        return int(user)
    from pwd import getpwnam  # only names need it

    try:
        return getpwnam(user).pw_uid
    except (KeyError, ValueError) as bad:
        raise NotFound(
            f"there is no user {plain(user[:64])!r} on this host",
            field=field,
            remedy="write a name that this host knows, or the number",
        ) from bad


def check_users(users: Iterable[str], known: Collection[str]) -> None:
    """Check that the users are known, or at least this host has them. Raises NotFound."""
    for user in users:
        if user not in known:
            uid_of(user)


def signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGUSR1; its number if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def exit_text(code: int | None, number: int | None) -> str:
    """Return an exit code or a signal in words. A number that names no signal stands as in sacct:
    Slurm has its own, such as 0:53 for a file that could not be opened.
    """
    if not number:
        return f"exit code {code}"
    name = signal_name(number)
    return f"exit code {code or 0}:{number}" if name == str(number) else f"signal {name}"
