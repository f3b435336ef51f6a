"""AccaSim, the only simulator of batch queues that pip installs, in its own virtual environment."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.process import ProcessCost, run_process
from fairbank.service.simulation.trace_files import open_trace
from fairbank.simulator.traces.swf import write

NAME = "accasim==1.1.3"
ABOUT = """AccaSim 1.1.3 is what `pip install accasim` gives. It does not start on Python 3.10 or
newer, because `collections.Mapping` moved; the benchmark restores that name. It reads only
text and rejects jobs with memory of 0, so it gets the same jobs, unpacked, with 1 KiB each.
Its EASY places jobs on nodes and keeps a reservation until its time comes, so its starts
differ; compare the speeds only. It writes its schedule and shows nothing."""

_RUN = """
import collections, collections.abc, sys
collections.Mapping = collections.abc.Mapping
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.simulator_class import Simulator
quiet = dict(scheduling_output=True, statistics_output=False, show_statistics=False,
             RESULTS_FOLDER_NAME="results")
Simulator(sys.argv[1], sys.argv[2], EASYBackfilling(FirstFit()), **quiet).start_simulation()
"""


class Unavailable(Exception):
    """AccaSim cannot be installed here."""


class AccaSim(NamedTuple):
    """Python interpreter that has AccaSim, and a working directory."""

    python: Path
    folder: Path

    def simulate(self, trace: Path, processors: int) -> ProcessCost:
        """Simulate EASY over a prepared trace."""
        machine = self.folder / "machine.json"
        nodes = {
            "groups": {"node": {"core": 1, "mem": 1_000_000}},
            "resources": {"node": processors},
        }
        machine.write_text(
            json.dumps(nodes | {"equivalence": {"processor": {"core": 1}}, "start_time": 0})
        )
        return run_process(
            [str(self.python), "-c", _RUN, str(trace), str(machine)], folder=self.folder
        )

    def prepare(self, trace: Path, most: int) -> tuple[Path, int]:
        """Write the first `most` jobs that AccaSim can read. Return the file and the number of
        jobs.
        """
        ready = self.folder / "ready.swf"
        with open_trace(trace) as read, ready.open("w") as file:
            jobs = [
                job._replace(
                    requested_memory=1,
                    used_memory=1,
                    requested_time=max(job.requested_time, job.run_time),
                )
                for job in islice(read.jobs, most)
                if job.run_time > 0 and job.requested_processors > 0
            ]
            file.writelines(write(read.header, jobs))
        return ready, len(jobs)


def install(folder: Path) -> AccaSim:
    """Install AccaSim in `folder`. Raises Unavailable with the reason."""
    python = folder / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", NAME],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(
                (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2][:200]
            )
    return AccaSim(python, folder)
