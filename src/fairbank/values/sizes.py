"""The largest sizes of a run that are believed."""

from __future__ import annotations

NODES_MAX = 1_000_000
CPUS_MAX = 10_000_000
TRES_MAX = 500
"""Characters of what it holds."""

CPU_SECONDS_MAX = 10**15
"""So that sums over many runs, and thousandths of them, fit into the integers of databases."""
