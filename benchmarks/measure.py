"""Measuring side by side: rounds in turn, so that a machine whose speed drifts is unfair to nobody."""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Figure:
    """One measured thing: the median of its rounds, and their range. Bigger is better unless the unit is a time."""

    name: str
    unit: str
    median: float
    low: float
    high: float


@dataclass
class Table:
    """Figures of one claim that belong side by side, and the ratios that the claim is about."""

    title: str
    command: str
    figures: list[Figure] = field(default_factory=list)
    ratios: dict[str, tuple[float, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def ratio(self, name: str, ours: Figure, theirs: Figure, target: str) -> None:
        """Record ours / theirs beside the target that the issue set."""
        self.ratios[name] = (ours.median / theirs.median if theirs.median else float("inf"), target)


def figure(name: str, unit: str, rounds: list[float]) -> Figure:
    return Figure(name, unit, statistics.median(rounds), min(rounds), max(rounds))


def rates(contenders: Mapping[str, Callable[[], int]], rounds: int) -> dict[str, Figure]:
    """Operations per second of each contender: a function that does some and says how many. Rounds go in turn."""
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            gc.collect()
            begun = time.perf_counter()
            count = work()
            seen[name].append(count / (time.perf_counter() - begun))
    return {name: figure(name, "operations/s", values) for name, values in seen.items()}


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def keep(name: str, tables: list[Table]) -> Path:
    """Write a claim's tables as JSON, with the machine they were seen on."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {
        "machine": {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}", "cores": _cores()},
        "tables": [
            {
                "title": table.title,
                "command": table.command,
                "figures": [vars(each) for each in table.figures],
                "ratios": {ratio: {"value": round(value, 3), "target": target} for ratio, (value, target) in table.ratios.items()},
                "notes": table.notes,
            }
            for table in tables
        ],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def _cores() -> int:
    return len(os.sched_getaffinity(0))
