"""List of 10,000 waiting jobs, beside a script that splits, sorts and prints the same output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory

from benchmarks.commands import cpu_ms
from benchmarks.measure import Figure, Say, Table, at_most, ratio
from tests.support.golden import GOLDEN
from tests.support.server import FAIRBANK

JOBS, MILLISECONDS, PART = 10_000, 300, 0.1
RECORDED = GOLDEN / "slurm-22.05" / "waiting"
NAME_WIDTH = 48
"""Width of the first column of the recording, the name of the job."""
FIRST = datetime(2026, 11, 20, tzinfo=UTC)
QUEUE, SCRIPT = "fairbank queue", "a script of four lines"
LINES = """
import sys
rows = [line.split() for line in open(sys.argv[1])]
rows.sort(key=lambda row: -int(row[5]))
for row in rows: print(*row[:11])
"""

REMARK = """
The script takes the columns as they are: it reads no number, time or size, finds no line that
cannot be read, and fits nothing to a terminal. squeue's own time is in neither.
"""


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 5 if short else 40
    say(f"{JOBS:,} waiting jobs: {rounds} rounds")
    with TemporaryDirectory() as folder:
        output = Path(folder) / "waiting.txt"
        output.write_text("".join(waiting_jobs()))
        copy(RECORDED / "config.txt", folder)
        commands = {
            QUEUE: [str(FAIRBANK), "queue", "--from", folder],
            SCRIPT: [sys.executable, "-c", LINES, str(output)],
        }
        seen: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(-1, rounds):
            for name, command in commands.items():
                taken = cpu_ms(command, {"TZ": "UTC"})
                if number >= 0:  # the first time files are read from the disk
                    seen[name].append(taken)
    ours, theirs = (Figure(name, "ms", tuple(values)) for name, values in seen.items())
    promises = (
        at_most(f"{QUEUE}, {JOBS:,} jobs", ours, MILLISECONDS),
        ratio(f"{SCRIPT} / {QUEUE}", theirs, ours, PART),
    )
    about = "Processor time, user and system together, to read squeue's output and print the list."
    return [Table(f"{JOBS:,} waiting jobs", about, (ours, theirs), promises)]


def waiting_jobs() -> Iterator[str]:
    """Yield lines of squeue: recorded jobs, each with its own number and submission."""
    recorded = (RECORDED / "waiting.txt").read_text().splitlines()
    submitted = [line[NAME_WIDTH:].split()[6] for line in recorded]
    for number in range(JOBS):
        at = number % len(recorded)
        time = FIRST + timedelta(seconds=37 * number)
        rest = recorded[at][NAME_WIDTH:].replace(submitted[at], f"{time:%Y-%m-%dT%H:%M:%S}", 1)
        yield f"{100_000 + number:<{NAME_WIDTH}}{rest}\n"
