"""Decay in plain Python, as in the benchmark, compared with the product's."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import usage
from tests.priority.recomputed_usage import zero_usage


def test_list_decay_equals_table_decay() -> None:
    payers, jobs = usage.cluster(usage.Scale(50, 5))
    ledger = usage.tick(zero_usage(payers, usage.TRES), jobs, payers)
    faded = usage.tick(ledger, jobs.only(np.zeros(5, bool)), payers).associations
    before = ledger.associations
    tres, raw, wall = usage.decay_in_python(
        before.tres.astype(float).tolist(), before.raw.tolist(), before.wall.tolist()
    )
    assert before.raw[0] > 0
    assert raw == pytest.approx(faded.raw.astype(float).tolist())
    assert wall == pytest.approx(faded.wall.tolist())
    assert np.array(tres) == pytest.approx(faded.tres.astype(float))
