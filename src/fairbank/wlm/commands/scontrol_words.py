"""Words of scontrol: what they name, and their fields."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from fairbank.core.errors import InvalidInput
from fairbank.wlm.commands.times import begin_time

_SHORTEST_KEY = 3
_TIMES = ("starttime", "eligibletime", "endtime", "deadline")
"""Fields with a time, which is in the zone of the user."""
_NICE = 100
"""Nice value of `Nice` without one."""


_ENTITIES = {
    "jobid": "job", "job": "job", "reservationname": "reservation", "reservation": "reservation",
    "nodename": "node", "partitionname": "partition",
}  # fmt: skip
"""Fields that name what `update` changes. The first of them that is given counts."""


def entity(word: str) -> str | None:
    """Return what `JobId=7` or `node=n1` names; keys may be shortened as in Slurm."""
    key, equals, _ = word.partition("=")
    if not equals or len(key) < _SHORTEST_KEY:
        return None
    return next((kind for name, kind in _ENTITIES.items() if name.startswith(key.lower())), None)


def read_fields(words: Sequence[str]) -> dict[str, str]:
    """Return the values by key, times as `@SECONDS`.

    Raises InvalidInput for a word without a key, and for a time that cannot be read.
    """
    fields = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise InvalidInput(f"Invalid input: {word}", remedy="write NAME=VALUE")
        is_time = len(key) >= _SHORTEST_KEY and any(name.startswith(key.lower()) for name in _TIMES)
        fields[key] = begin_time(value, int(time.time()), field=key) if is_time else value
    return fields


def pairs(words: Sequence[str]) -> Iterator[str]:
    """Yield NAME=VALUE, also of the words `JobId 7`; of `Nice` alone, its default."""
    rest = iter(words)
    for word in rest:
        if "=" in word:
            yield word
        elif word.lower() == "nice":
            yield f"{word}={_NICE}"
        else:
            value = next(rest, None)
            yield word if value is None else f"{word}={value}"
