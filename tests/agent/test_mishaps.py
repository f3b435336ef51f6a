"""What befell the agent, as it tells of it."""

from __future__ import annotations

from collections import Counter

from fairbank.agent.incidents import Incident, Incidents
from fairbank.agent.protocol.codec import TEXT_MAX


def test_each_kind_is_counted_with_its_first_time_and_its_last_words() -> None:
    tally: Counter[tuple[str, ...]] = Counter()
    mishaps = Incidents(tally)
    assert mishaps.status(0) == []
    mishaps.record(Incident.REJECTED_USER, "user 7", 10.0)
    mishaps.record(Incident.BAD_CONNECTION, "GET / HTTP/1.1", 11.0)
    mishaps.record(Incident.REJECTED_USER, "user 8", 20.9)
    garbage, stranger = mishaps.status(1_000)
    assert (garbage["kind"], garbage["count"], garbage["text"]) == (
        "bad connection",
        1,
        "GET / HTTP/1.1",
    )
    assert [stranger[name] for name in ("kind", "count", "since", "last", "text")] == [
        "rejected user",
        2,
        1_010,
        1_020,
        "user 8",
    ]
    assert tally == {("incidents", "rejected user"): 2, ("incidents", "bad connection"): 1}


def test_each_kind_has_a_remedy_and_no_words_are_endless() -> None:
    mishaps = Incidents(Counter())
    for what in Incident:
        mishaps.record(what, "ü" * 100_000, 0.0)
    told = mishaps.status(0)
    assert len(told) == len(Incident)
    assert all(each["about"] and each["remedy"] for each in told)
    assert all(len(each["text"].encode()) <= TEXT_MAX for each in told)
