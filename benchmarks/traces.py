"""Recorded workloads under every policy: figures of each schedule, its fingerprint, and its
cost.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.bank import sqlite_folder
from benchmarks.measure import NotAvailable, Say, Table
from benchmarks.process import run_process
from benchmarks.schedule import DIGITS, Schedule
from benchmarks.simulate import SHARED
from tests.support.server import FAIRBANK
from tests.support.traces import KTH, LUBLIN, METACENTRUM, UBCCR, trace_file

TRACES = {"KTH-SP2": KTH, "Lublin-256": LUBLIN, "MetaCentrum": METACENTRUM, "UB CCR week": UBCCR}
POLICIES = ("fcfs", "fifo", "easy", "conservative", "slurm")
QUICK = ("fcfs", "easy")

ABOUT = """`fairbank simulate TRACE --policy POLICY --json` of the four recorded workloads. Starts:
the first twelve digits of its `fingerprint`, the SHA-256 of what `--starts FILE` writes, one
line per job. They are the same on other machines ([how
far](howto/simulate.md#what-is-the-same-everywhere)); the CPU time is this machine's."""

REMARK = """Conservative backfill plans again for every pending job at every event: in the UB CCR
week, where thousands wait, that takes minutes. `tests/simulator/test_shared_schedules.py`
compares first come first served and EASY with the published figures of the traces, and fast
schedules with this table. Without the traces (`FAIRBANK_SHARED` names their directory)
nothing of this is measured."""


def measure(*, short: bool, say: Say) -> list[Table]:
    """Measure one round: schedules are deterministic. The short form has the fast policies only."""
    files = {name: trace_file(SHARED, stem) for name, stem in TRACES.items()}
    if not any(file.exists() for file in files.values()):
        raise NotAvailable(
            f"there is no trace in {SHARED}; FAIRBANK_SHARED says in which folder data/swf is"
        )
    schedules: list[Schedule] = []
    with sqlite_folder() as folder:
        for name, file in files.items():
            if not file.exists():
                say(f"{name} is left out: there is no {file}")
                continue
            for policy in QUICK if short else POLICIES:
                say(f"{name} under {policy}")
                schedules.append(schedule(name, file, policy, folder))
    return [Table("Schedules of recorded workloads", ABOUT, (), schedules=tuple(schedules))]


def schedule(name: str, file: Path, policy: str, folder: Path) -> Schedule:
    """Return the schedule that the command makes of the trace, in a process of its own. Its output
    goes to `folder`.
    """
    output = folder / "output.json"
    took = run_process(
        [FAIRBANK, "simulate", str(file), "--policy", policy, "--json"], output=output
    )
    row: dict[str, Any] = json.loads(output.read_bytes())["data"][0]
    return Schedule(
        trace=name,
        policy=policy,
        jobs=row["jobs"],
        mean_wait=row["mean_wait_seconds"],
        mean_slowdown=row["mean_bounded_slowdown"],
        utilisation=row["utilisation"],
        took=took.seconds,
        starts=row["fingerprint"][:DIGITS],
    )
