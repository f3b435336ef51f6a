"""Controller that is killed with 10,000 waiting and at least 500 running jobs: the time from the
next start to the first answer, and what `squeue` of all jobs takes then.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.commands import cpu_ms
from benchmarks.full_controller import NODES, WAITING, running_controller, start_program
from benchmarks.measure import Figure, Say, Table, at_most
from fairbank.wlm.client.connection import Controller

ANSWER_SECONDS = 3
ABOUT = (
    f"{WAITING:,} jobs wait, and jobs run on {NODES:,} simulated nodes, when the controller is"
    " killed: seconds from the next start to the first answer about all jobs, and processor time of"
    " `squeue`."
)


def measure(*, short: bool, say: Say) -> list[Table]:
    seconds, milliseconds = list[float](), list[float]()
    with running_controller(say) as (directory, pid), ExitStack() as processes:
        environment = {"FAIRBANK_CLUSTER": str(directory)}
        squeue = [sys.executable, "-P", "-m", "fairbank.wlm.commands", "squeue"]
        for number in range(1 if short else 5):
            say(f"round {number + 1}")
            os.kill(pid, signal.SIGKILL)
            begun = time.perf_counter()
            pid = start_program(processes, "fairbank.wlm.controller", directory)
            _ask(directory)
            seconds.append(time.perf_counter() - begun)
            milliseconds.append(cpu_ms(squeue, environment))
    restart = Figure("start to first answer", "s", tuple(seconds))
    listing = Figure("squeue of all jobs", "ms", tuple(milliseconds))
    promise = at_most(restart.name, restart, ANSWER_SECONDS)
    return [Table("Workload manager: restart", ABOUT, (restart, listing), (promise,))]


def _ask(directory: Path) -> None:
    with Controller(directory) as controller:
        statistics = controller.request("statistics")
    if statistics["jobs_pending"] < WAITING // 2:
        raise RuntimeError(f"the controller has lost jobs: {statistics}")
