"""What the lab's Slurm says of itself, as it was recorded, and what checks find wrong."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fairbank.core.check import HealthCheck
from fairbank.slurm.parsers import scontrol

GOLDEN = Path(__file__).parents[2] / "golden" / "slurm-22.05"


def said(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text()


CONFIG = scontrol.read_config(said("config"))


def wrong(checks: Iterable[HealthCheck]) -> list[str]:
    """What is not ok; each of them says what to do."""
    found = [each for each in checks if not each.ok]
    assert all(each.remedy for each in found)
    return [each.what for each in found]
