"""Recorded settings of the lab's Slurm, and the failed checks of the doctor."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fairbank.core.health import HealthCheck
from fairbank.slurm.parsers import config

GOLDEN = Path(__file__).parents[2] / "golden" / "slurm-22.05"


def recorded(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text()


CONFIG = config.read_config(recorded("config"))


def failed_checks(checks: Iterable[HealthCheck]) -> list[str]:
    """Return the failed checks; each must have a remedy."""
    failed = [check for check in checks if not check.ok]
    assert all(check.remedy for check in failed)
    return [check.what for check in failed]
