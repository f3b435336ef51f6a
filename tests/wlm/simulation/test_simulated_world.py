"""Simulated cluster under faults: no job is lost, none is charged twice, no core is shared."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest

FAULTS = 12
"""Faults of each history."""
KEPT_SEEDS = (1_035, 1_271)
"""Seeds of histories that failed once."""


def play(seeds: Iterable[int]) -> None:
    """Play histories in a process of their own, in which they are the same each time."""
    words = ["-m", "tests.wlm.simulation.histories", str(FAULTS), *map(str, seeds)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    result = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-4_000:]


def test_faults_lose_no_job_and_charge_none_twice() -> None:
    play([*range(4), *KEPT_SEEDS])


@pytest.mark.campaign
def test_many_faults_lose_no_job_and_charge_none_twice(rounds: Callable[[int, int], int]) -> None:
    play(range(1_000, 1_000 + rounds(1_500, 100)))
