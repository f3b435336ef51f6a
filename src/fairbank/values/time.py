"""Instants and durations: whole seconds, UTC. Printing in a time zone is the doors' affair."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NewType, Protocol

from fairbank.values.trouble import Malformed

Instant = NewType("Instant", int)
"""Whole seconds since 1970-01-01T00:00:00Z."""

DAY = 86_400
LAST_INSTANT = Instant(253_402_300_799)  # 9999-12-31T23:59:59Z: what every database and calendar can print


class Clock(Protocol):
    """Only shells own one; rules take `now`."""

    def now(self) -> Instant: ...


class StoppedClock:
    """The clock of tests and of replays: it moves when told."""

    def __init__(self, at: int = 0) -> None:
        self.at = Instant(at)

    def now(self) -> Instant:
        return self.at


def iso(at: int) -> str:
    """`2026-11-21T07:30:12Z`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_instant(text: str, *, field: str = "time") -> Instant:
    """Read `2026-11-21`, `2026-11-21T07:30[:12][Z|+01:00]`, or seconds since 1970. Without a zone: UTC.

    Raises Malformed, naming `field`.
    """
    try:
        if re.fullmatch(r"\d{1,12}", text, re.ASCII):
            seconds = int(text)
        else:
            read = datetime.fromisoformat(text)
            seconds = int((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError) as bad:
        raise _not_a_time(text, field) from bad
    if not 0 <= seconds <= LAST_INSTANT:
        raise _not_a_time(text, field)
    return Instant(seconds)


def _not_a_time(text: str, field: str) -> Malformed:
    return Malformed(f"{text[:40]!r} is not a time", field=field, remedy="write 2026-11-21, 2026-11-21T07:30Z, or seconds since 1970")


_SLURM_DURATION = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", re.ASCII)


def parse_duration(text: str, *, field: str = "time limit") -> int:
    """Seconds of a Slurm time limit: `min`, `min:sec`, `h:m:s`, `d-h`, `d-h:m`, `d-h:m:s`.

    Slurm rounds limits up to whole minutes; so does this. Unlimited is refused: a hold needs a finite limit
    (syntax: sbatch(1), --time; finite limits: HADM, "Design Goals").
    """
    match = _SLURM_DURATION.fullmatch(text) if len(text) <= 32 else None
    if match is None:
        raise Malformed(
            f"{text[:40]!r} is not a finite time limit", field=field, remedy="write minutes, h:mm:ss or d-hh:mm:ss, for example 12:00:00"
        )
    days, first, second, third = (None if part is None else int(part) for part in match.groups())
    if days is not None:
        seconds = days * DAY + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
    elif third is not None:
        seconds = (first or 0) * 3600 + (second or 0) * 60 + third
    else:
        seconds = (first or 0) * 60 + (second or 0)
    return -(-seconds // 60) * 60


def show_duration(seconds: int) -> str:
    """`[d-]hh:mm:ss`, as sacct and scontrol print it."""
    days, rest = divmod(seconds, DAY)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock
