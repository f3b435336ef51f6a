"""Page of the differences between Slurm and the embedded workload manager."""

from __future__ import annotations

import tomllib
from pathlib import Path

TABLE = Path(__file__).parents[3] / "tests" / "wlm" / "scenarios" / "differences.toml"
_INTRODUCTION = """# Differences from Slurm

The same {count} scenarios of commands (`tests/wlm/scenarios/*.txt`) run under Slurm of Debian and
under the embedded workload manager. What the commands print, their exit codes, and what `scontrol`,
`squeue` and `sacct` show of the jobs are compared field by field. `make test-slurm` does so with
Slurm 22.05, `make test-slurm RELEASE=trixie` with 24.11, whose text Fairbank prints: there the
order of fields and rows and all blanks are compared, too. `make test` (a sample) and
`make campaign` (all) compare with the recorded output of 22.05. A test fails if anything differs
that is not on this page, and if something on this page does not differ, unless Slurm itself prints
now this, now that.

Ids of jobs, names of nodes, hosts and users, times and paths are not compared; the resources of a
job are, although 22.05 shows them as `TRES`, and 24.11 and Fairbank as `ReqTRES` and `AllocTRES`.
"""
_HEAD = "| What | Slurm | Here | Reason |\n| --- | --- | --- | --- |"


def wlm_differences_page() -> str:
    """Return the page."""
    scenarios = sum(
        line.startswith("## ")
        for file in TABLE.parent.glob("*.txt")
        if file.name != "recorded.txt"
        for line in file.read_text().splitlines()
    )
    rows = tomllib.loads(TABLE.read_text())["difference"]
    lines = [
        f"| {row['what']} | {row['slurm']} | {row['here']} | {row['reason']} |" for row in rows
    ]
    return "\n".join([_INTRODUCTION.format(count=scenarios), _HEAD, *lines, ""])
