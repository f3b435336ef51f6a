"""What befell the agent that a person should look at: how often, since when, and the last of each kind in words.

Of this life of the agent only. The log has each of them; here they are for `fairbank agent status` and `fairbank doctor --slurm`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from fairbank.slurm.frames import shortened


class Mishap(Enum):
    """A kind of them."""

    STRANGER = "stranger"
    """somebody wanted to speak for slurmctld who may not"""
    GARBAGE = "garbage"
    """what connected did not speak as slurmctld's plug-in does, or too many did"""
    UNHELD = "unheld"
    """a job runs that the bank can hold nothing for, as the terms of its partition say"""
    SET_ASIDE = "set aside"
    """the bank cannot take a report, which is only in the log now"""


_TOLD: Mapping[Mishap, tuple[str, str]] = {
    Mishap.STRANGER: (
        "strangers sent away from its socket",
        "look at what it is; if it is slurmctld itself, set plugin.slurm_user to slurm.conf's SlurmUser",
    ),
    Mishap.GARBAGE: (
        "connections closed that did not speak as slurmctld's plug-in does",
        "see what connects there; if it is slurmctld, install the plug-in and the agent of one release",
    ),
    Mishap.UNHELD: (
        "jobs let run that the bank can hold nothing for",
        "enter the account or the partition in the bank, or give the partition a finite MaxTime; fairbank jobs --refused has what was not "
        "charged, fairbank reconcile --fix --again charges it then",
    ),
    Mishap.SET_ASIDE: (
        "reports set aside that the bank cannot take",
        "the agent's log has them; fairbank reconcile --fix charges or gives back what became of their runs",
    ),
}
"""What is told of each kind, and what to do about it."""


class _Befallen(msgspec.Struct):
    count: int
    since: float
    last: float
    words: str


class Mishaps:
    """Each is counted in `tally`, too. Times are of a clock that only goes forward."""

    def __init__(self, tally: Counter[tuple[str, str]]) -> None:
        self._tally = tally
        self._befallen: dict[Mishap, _Befallen] = {}

    def befell(self, what: Mishap, words: str, now: float) -> None:
        """It has happened, and these are its words."""
        self._tally["mishaps", what.value] += 1
        known = self._befallen.setdefault(what, _Befallen(0, now, now, ""))
        known.count, known.last, known.words = known.count + 1, now, shortened(words)

    def told(self, ahead: float) -> list[dict[str, Any]]:
        """Those that have happened, as JSON. Instants are seconds since 1970, the clock's and `ahead` more."""
        return [
            {
                "what": what.value,
                "about": _TOLD[what][0],
                "count": known.count,
                "since": int(known.since + ahead),
                "last": int(known.last + ahead),
                "words": known.words,
                "remedy": _TOLD[what][1],
            }
            for what, known in sorted(self._befallen.items(), key=lambda each: each[0].value)
        ]
