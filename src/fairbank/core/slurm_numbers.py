"""Numbers that Slurm's C has and that several rooms need: what stands for something else, how far a type goes, and the order of TRES.

The names behind them are those of Slurm's own headers (slurm.h, slurmdb.h).
"""

from __future__ import annotations

U32_MAX = 2**32 - 1
"""The most that an unsigned number of 32 bits holds: weights, nodes, CPUs, priorities of QOS and associations."""

PRIORITY_MAX = U32_MAX
"""The highest priority of a job, and what a normalised one is a part of."""

UNLIMITED_MINUTES = U32_MAX
"""A time limit without end (INFINITE)."""

NO_VAL = U32_MAX - 1
"""Not set (NO_VAL); also the level of an account that stands on its parent's shares."""

ON_PARENT = 2**31 - 1
"""The shares of who has none of its own and stands on those of its parent (SLURMDB_FS_USE_PARENT)."""

SHARES_MAX = ON_PARENT - 1

NICE_OFFSET = 2**31
"""Nice values and site factors are kept as what they are above this (NICE_OFFSET)."""

NICE_MAX = NICE_OFFSET - 3
"""Nice values and site factors that anybody may give are from minus this up to this."""

STATIC_TRES = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
"""The TRES that every Slurm has, in the order of their ids from 1; others follow in the order in which a site made them."""

NODES_MAX = 1_000_000
CPUS_MAX = 10_000_000
TRES_MAX = 500
"""Characters of what it holds."""

CPU_SECONDS_MAX = 10**15
"""So that sums over many runs, and thousandths of them, fit into the integers of databases."""
