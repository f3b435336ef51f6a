"""Incidents of the agent: counts, times and texts."""

from __future__ import annotations

from collections import Counter

from fairbank.agent.incidents import Incident, Incidents
from fairbank.agent.protocol import TEXT_MAX


def test_incident_has_count_first_time_and_last_text() -> None:
    counts: Counter[tuple[str, ...]] = Counter()
    incidents = Incidents(counts)
    assert incidents.status(0) == []
    incidents.record(Incident.REJECTED_USER, "user 7", 10.0)
    incidents.record(Incident.BAD_CONNECTION, "GET / HTTP/1.1", 11.0)
    incidents.record(Incident.REJECTED_USER, "user 8", 20.9)
    garbage, rejected = incidents.status(1_000)
    assert (garbage["kind"], garbage["count"], garbage["text"]) == (
        "bad connection",
        1,
        "GET / HTTP/1.1",
    )
    assert [rejected[name] for name in ("kind", "count", "since", "last", "text")] == [
        "rejected user",
        2,
        1_010,
        1_020,
        "user 8",
    ]
    assert counts == {("incidents", "rejected user"): 2, ("incidents", "bad connection"): 1}


def test_each_incident_has_a_remedy_and_a_short_text() -> None:
    incidents = Incidents(Counter())
    for kind in Incident:
        incidents.record(kind, "ü" * 100_000, 0.0)
    status = incidents.status(0)
    assert len(status) == len(Incident)
    assert all(incident["about"] and incident["remedy"] for incident in status)
    assert all(len(incident["text"].encode()) <= TEXT_MAX for incident in status)
