"""Incidents of the agent that an administrator should see: how often, since when, and the last one.

They are those since the agent started. The log has each of them; here they are for
`fairbank agent status` and `fairbank doctor --slurm`.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any

import msgspec

from fairbank.agent.protocol import one_line


class Incident(Enum):
    """Kind of an incident: its name, description and remedy."""

    REJECTED_USER = (
        "rejected user",
        "connections rejected because only SlurmUser and root may connect",
        "see which process it is; if it is slurmctld, set plugin.slurm_user to slurm.conf's "
        "SlurmUser",
    )
    BAD_CONNECTION = (
        "bad connection",
        "connections closed that did not speak the protocol of slurmctld's plug-in",
        "see which process connects; if it is slurmctld, install the plug-in and the agent of one "
        "release",
    )
    WITHOUT_HOLD = (
        "without hold",
        "jobs started for which the bank could not hold credit",
        "enter the account or the partition in the bank, or give the partition a finite MaxTime; "
        "fairbank jobs --refused -a lists what was not charged, "
        "fairbank reconcile --fix --again charges it then",
    )
    DROPPED_REPORT = (
        "dropped report",
        "reports dropped that the bank cannot accept",
        "the agent's log has them; fairbank reconcile --fix charges or releases their runs",
    )


class IncidentRecord(msgspec.Struct):
    """Occurrences of one kind of incident; times are monotonic seconds."""

    count: int
    since: float
    last: float
    text: str


class Incidents:
    """Incidents so far; each is counted in `counts` too."""

    def __init__(self, counts: Counter[tuple[str, ...]]) -> None:
        self._counts = counts
        self._records: dict[Incident, IncidentRecord] = {}

    def record(self, kind: Incident, text: str, now: float) -> None:
        """Record an incident.

        Args:
            text: description of this one.
            now: its time.
        """
        self._counts["incidents", kind.value[0]] += 1
        record = self._records.setdefault(kind, IncidentRecord(0, now, now, ""))
        record.count, record.last, record.text = record.count + 1, now, one_line(text)

    def status(self, clock_offset: float) -> list[dict[str, Any]]:
        """Return the incidents as JSON; `clock_offset` turns monotonic into Unix seconds."""
        return [
            {
                "kind": kind.value[0],
                "about": kind.value[1],
                "count": record.count,
                "since": int(record.since + clock_offset),
                "last": int(record.last + clock_offset),
                "text": record.text,
                "remedy": kind.value[2],
            }
            for kind, record in sorted(self._records.items(), key=lambda item: item[0].value)
        ]
