"""What befell the agent, as it tells of it."""

from __future__ import annotations

from collections import Counter

from fairbank.slurm.agent.mishaps import Mishap, Mishaps
from fairbank.slurm.frames import TEXT_MAX


def test_each_kind_is_counted_with_its_first_time_and_its_last_words() -> None:
    tally: Counter[tuple[str, str]] = Counter()
    mishaps = Mishaps(tally)
    assert mishaps.told(0) == []
    mishaps.befell(Mishap.STRANGER, "user 7", 10.0)
    mishaps.befell(Mishap.GARBAGE, "GET / HTTP/1.1", 11.0)
    mishaps.befell(Mishap.STRANGER, "user 8", 20.9)
    garbage, stranger = mishaps.told(1_000)
    assert (garbage["what"], garbage["count"], garbage["words"]) == ("garbage", 1, "GET / HTTP/1.1")
    assert [stranger[name] for name in ("what", "count", "since", "last", "words")] == [
        "stranger",
        2,
        1_010,
        1_020,
        "user 8",
    ]
    assert tally == {("mishaps", "stranger"): 2, ("mishaps", "garbage"): 1}


def test_each_kind_has_a_remedy_and_no_words_are_endless() -> None:
    mishaps = Mishaps(Counter())
    for what in Mishap:
        mishaps.befell(what, "ü" * 100_000, 0.0)
    told = mishaps.told(0)
    assert len(told) == len(Mishap)
    assert all(each["about"] and each["remedy"] for each in told)
    assert all(len(each["words"].encode()) <= TEXT_MAX for each in told)
