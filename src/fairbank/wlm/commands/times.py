"""Times that users write, in the zone of TZ. The controller gets them as `@SECONDS`."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from fairbank.core.time import parse_moment


def parse_time(text: str, now: int, *, field: str, is_future: bool = False) -> int:
    """Return a time as Slurm's commands read it, in seconds since 1970. Raises InvalidInput.

    Args:
        text: the time.
        now: current time in seconds since 1970.
        field: name for the error.
        is_future: a clock time that is over today is that of tomorrow.
    """
    at = parse_moment(text, now, _zone_at(now), field=field, is_future=is_future)
    # Summer time may differ then.
    return parse_moment(text, now, _zone_at(at), field=field, is_future=is_future)


def begin_time(text: str, now: int, *, field: str) -> str:
    """Return a time of the future as `@SECONDS`, which means the same in every zone."""
    return f"@{parse_time(text, now, field=field, is_future=True)}"


def _zone_at(at: int) -> tzinfo:
    return datetime.fromtimestamp(at, UTC).astimezone().tzinfo or UTC
