"""One live pass over ten thousand waiting jobs and ten thousand nodes, and the sets of nodes that it works with."""

from __future__ import annotations

from benchmarks import nodesets
from benchmarks.measure import Say, Table


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 5 if short else 15
    say(f"sets of {nodesets.NODES:,} nodes")
    return nodesets.tables(rounds)
