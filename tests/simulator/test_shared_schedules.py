"""Schedules of real traces, where this machine has them: the figures that their collection states for first come first served and EASY."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.service.simulating import simulate_file
from fairbank.simulator.simulation import Plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STATED = {
    ("KTH-SP2-1996-2.1-cln", "fcfs"): ("389852.168", "7518.74", "0.69885"),
    ("KTH-SP2-1996-2.1-cln", "easy"): ("6805.173", "90.9416", "0.69924"),
    ("MetaCentrum-Zewura-Zegox-2013", "fcfs"): ("1385.111", "9.5936", "0.52478"),
    ("MetaCentrum-Zewura-Zegox-2013", "easy"): ("1381.336", "9.0238", "0.52478"),
    ("UBCCR-Slurm-medium-week", "fcfs"): ("329336.237", "1477.23", "0.82129"),
    ("UBCCR-Slurm-medium-week", "easy"): ("254726.589", "1060.62", "0.82068"),
    ("Lublin-256-synthetic", "fcfs"): ("2388443.760", "66502.48", "0.65491"),
    ("Lublin-256-synthetic", "easy"): ("97155.995", "590.05", "0.93634"),
}


@pytest.mark.parametrize(("trace", "policy"), STATED)
def test_a_real_trace_gives_the_stated_figures(shared: Path, trace: str, policy: str) -> None:
    path = shared / "data" / "swf" / f"{trace}.swf.gz"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    [outcome] = simulate_file(path, [policy], Plan())
    assert outcome.figures is not None
    found = (outcome.figures.mean_wait, outcome.figures.mean_slowdown, outcome.figures.utilisation)
    for figure, stated in zip(found, STATED[trace, policy], strict=True):
        assert f"{figure:.{len(stated.partition('.')[2])}f}" == stated
