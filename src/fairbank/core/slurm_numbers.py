"""Numbers of Slurm: special values, limits of its integer types, the order of TRES, debug levels,
sizes of memory.

Names in parentheses are those of Slurm's headers (slurm.h, slurmdb.h).
"""

from __future__ import annotations

import re

from fairbank.core.errors import InvalidInput

RELEASE = "24.11.0"
"""Release of Slurm whose forms the commands have."""

U32_MAX = 2**32 - 1
"""Largest unsigned 32-bit integer: weights, nodes, CPUs, priorities of QOS and associations."""

PRIORITY_MAX = U32_MAX
"""Highest priority of a job. Normalised priorities are fractions of it."""

UNLIMITED_MINUTES = U32_MAX
"""Unlimited time limit (INFINITE)."""

UNLIMITED_SECONDS = 365 * 86_400
"""Seconds that Slurm plans for a job without any time limit: a year."""

NO_VAL = U32_MAX - 1
"""Not set (NO_VAL); also the level of an account that uses the shares of its parent."""

ON_PARENT = 2**31 - 1
"""Shares of an association that uses those of its parent (SLURMDB_FS_USE_PARENT)."""

SHARES_MAX = ON_PARENT - 1

NICE_OFFSET = 2**31
"""Offset at which nice values and site factors are stored (NICE_OFFSET)."""

NICE_MAX = NICE_OFFSET - 3
"""Largest absolute nice value or site factor that can be set."""

STATIC_TRES = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
"""TRES of every Slurm, by id from 1; the TRES of a site follow in order of creation."""

NODES_MAX = 1_000_000
CPUS_MAX = 10_000_000
TRES_MAX = 4_000
"""Maximum length of a TRES string."""

CPU_SECONDS_MAX = 10**15
"""Limit that keeps sums over many runs, and thousandths of them, within 64-bit integers."""

STEP_TASKS_MAX = 10_000
"""Most tasks of a step: each has three pipes to its step daemon, on one host."""

TASKS_MAX = 4_000_000
"""Slurm's own limit of MaxArraySize."""

DEBUG_LEVELS = (
    "quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5",
)  # fmt: skip
"""Words of the levels; the place of each is its number."""
DEBUG_FORM = f"one of {', '.join(DEBUG_LEVELS)}"


def parse_debug_level(text: str, field: str) -> str:
    """Return the word of a level.

    >>> parse_debug_level("Debug2", "level"), parse_debug_level("3", "level")
    ('debug2', 'info')

    Args:
        text: a word in any case, or a number.
        field: the option or setting that contains it.

    Raises:
        InvalidInput: it is another word or number.
    """
    word = text.lower()
    if len(text) == 1 and text in "0123456789":
        word = DEBUG_LEVELS[int(text)]
    if word not in DEBUG_LEVELS:
        raise InvalidInput(f"{text[:40]!a} is not a debug level", field=field, remedy=DEBUG_FORM)
    return word


_SIZE = re.compile(r"(\d{1,12})([KMGT]?)B?", re.ASCII | re.IGNORECASE)
_KIB = {"K": 1, "": 1024, "M": 1024, "G": 1024**2, "T": 1024**3}


def parse_memory(text: str, *, field: str) -> int:
    """Parse a size as sbatch's --mem takes it (`4000`, `16G`); return MiB, rounded up.

    Raises:
        InvalidInput: the text is invalid; the error names `field`.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        remedy = "write a whole number of MiB, or one with K, M, G or T behind it: 16G or 4000M"
        raise InvalidInput(f"{text[:40]!r} is not a size of memory", field=field, remedy=remedy)
    return -(-int(match[1]) * _KIB[match[2].upper()] // 1024)
