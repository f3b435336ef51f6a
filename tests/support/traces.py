"""Recorded workloads of tests and benchmarks, by file name; the files are in the shared
directory.
"""

from __future__ import annotations

from pathlib import Path

KTH = "KTH-SP2-1996-2.1-cln"
LUBLIN = "Lublin-256-synthetic"
METACENTRUM = "MetaCentrum-Zewura-Zegox-2013"
UBCCR = "UBCCR-Slurm-medium-week"

JOBS = {KTH: 28_476, LUBLIN: 10_000, METACENTRUM: 17_900, UBCCR: 19_579}
"""Number of jobs of each trace, as its collection states it."""


def trace_file(shared: Path, name: str) -> Path:
    """Return the path of the trace in the shared directory; the file may be missing."""
    return shared / "data" / "swf" / f"{name}.swf.gz"
