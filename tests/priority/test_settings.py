"""Settings of priorities. Slurm's spelling of them is tested in
tests/slurm/parsers/test_priority_settings.py.
"""

from __future__ import annotations

import math

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.priority.settings import MultifactorSettings, PriorityWeights


def test_default_max_age_is_a_week() -> None:
    assert MultifactorSettings().max_age_seconds == 7 * DAY


def test_settings_without_slurmdbd_ignore_age_and_fair_share() -> None:
    settings = MultifactorSettings(
        weights=PriorityWeights(age=5, fairshare=7, qos=6), accounted=False
    )
    assert (settings.counted.age, settings.counted.fairshare, settings.counted.qos) == (0, 0, 6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1.0])
def test_invalid_weight_is_refused(bad: float) -> None:
    with pytest.raises(InvalidInput) as raised:
        PriorityWeights(tres={"cpu": 1.0, "mem": bad})
    assert (raised.value.field, "mem=" in raised.value.message) == ("PriorityWeightTRES", True)
    with pytest.raises(InvalidInput) as raised:
        PriorityWeights(age=bad)  # type: ignore[arg-type]
    assert raised.value.field == "PriorityWeightAge"
    with pytest.raises(InvalidInput):
        MultifactorSettings(max_age_seconds=-1)
