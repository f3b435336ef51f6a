"""Incidents of the agent that an administrator should see: how often, since when, and the last one.

They are of this life of the agent only. The log has each of them; here they are for
`fairbank agent status` and `fairbank doctor --slurm`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from fairbank.agent.protocol.codec import one_line


class Incident(Enum):
    """Kind of an incident."""

    REJECTED_USER = "rejected user"
    BAD_CONNECTION = "bad connection"
    WITHOUT_HOLD = "without hold"
    DROPPED_REPORT = "dropped report"


_TEXTS: Mapping[Incident, tuple[str, str]] = {  # description, remedy
    Incident.REJECTED_USER: (
        "connections rejected because only SlurmUser and root may connect",
        "see which process it is; if it is slurmctld, set plugin.slurm_user to slurm.conf's "
        "SlurmUser",
    ),
    Incident.BAD_CONNECTION: (
        "connections closed that did not speak the protocol of slurmctld's plug-in",
        "see which process connects; if it is slurmctld, install the plug-in and the agent of one "
        "release",
    ),
    Incident.WITHOUT_HOLD: (
        "jobs started for which the bank could not hold credit",
        "enter the account or the partition in the bank, or give the partition a finite MaxTime; "
        "fairbank jobs --refused lists what was not charged, "
        "fairbank reconcile --fix --again charges it then",
    ),
    Incident.DROPPED_REPORT: (
        "reports dropped that the bank cannot take",
        "the agent's log has them; fairbank reconcile --fix charges or releases their runs",
    ),
}


class _Occurrences(msgspec.Struct):
    count: int
    since: float
    last: float
    text: str


class Incidents:
    """Incidents so far; each is counted in `counts` too. Times are monotonic seconds."""

    def __init__(self, counts: Counter[tuple[str, str]]) -> None:
        self._counts = counts
        self._occurrences: dict[Incident, _Occurrences] = {}

    def record(self, kind: Incident, text: str, now: float) -> None:
        """Record an incident.

        Args:
            kind: its kind.
            text: description of this one.
            now: its time.
        """
        self._counts["incidents", kind.value] += 1
        known = self._occurrences.setdefault(kind, _Occurrences(0, now, now, ""))
        known.count, known.last, known.text = known.count + 1, now, one_line(text)

    def status(self, clock_offset: float) -> list[dict[str, Any]]:
        """Return the incidents as JSON; `clock_offset` turns monotonic into Unix seconds."""
        return [
            {
                "kind": kind.value,
                "about": _TEXTS[kind][0],
                "count": known.count,
                "since": int(known.since + clock_offset),
                "last": int(known.last + clock_offset),
                "text": known.text,
                "remedy": _TEXTS[kind][1],
            }
            for kind, known in sorted(self._occurrences.items(), key=lambda item: item[0].value)
        ]
