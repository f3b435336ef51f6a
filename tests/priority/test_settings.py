"""Settings of priorities. Slurm's spelling of them is tested in
tests/slurm/parsers/test_priority_settings.py.
"""

from __future__ import annotations

import math

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.priority.settings import MultifactorSettings, PriorityWeights


def test_usage_of_the_whole_week_counts_by_default() -> None:
    assert MultifactorSettings().max_age_seconds == 7 * DAY


def test_without_its_database_neither_age_nor_fair_share_counts() -> None:
    told = MultifactorSettings(weights=PriorityWeights(age=5, fairshare=7, qos=6), accounted=False)
    assert (told.counted.age, told.counted.fairshare, told.counted.qos) == (0, 0, 6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1.0])
def test_a_weight_of_no_number_is_refused_wherever_it_comes_from(bad: float) -> None:
    with pytest.raises(InvalidInput) as told:
        PriorityWeights(tres={"cpu": 1.0, "mem": bad})
    assert (told.value.field, "mem=" in told.value.message) == ("PriorityWeightTRES", True)
    with pytest.raises(InvalidInput) as told:
        PriorityWeights(age=bad)  # type: ignore[arg-type]
    assert told.value.field == "PriorityWeightAge"
    with pytest.raises(InvalidInput):
        MultifactorSettings(max_age_seconds=-1)
