"""Start-up cost of the everyday commands, beside a Python that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from benchmarks.bank import benchmark_bank, sqlite_folder
from benchmarks.measure import Figure, Say, Table, at_most
from tests.support.server import FAIRBANK, run_bank

MAX_MS = 60
NOTHING, HELP = "python -c pass", "fairbank --help"
OVERVIEW, BALANCE = "fairbank, over the socket", "fairbank balance, over the socket"


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 5 if short else 40
    with sqlite_folder() as folder:
        url = f"sqlite:///{folder}/fairbank.sqlite"
        with benchmark_bank(url, 3):
            pass
        with run_bank(url) as bank:
            commands = {
                NOTHING: [sys.executable, "-c", "pass"],
                HELP: [FAIRBANK, "--help"],
                OVERVIEW: [FAIRBANK],
                BALANCE: [FAIRBANK, "balance"],
            }
            say(f"{', '.join(commands)}: {rounds} rounds")
            seen: dict[str, list[float]] = {name: [] for name in commands}
            for number in range(rounds + 1):
                for name, command in commands.items():
                    taken = cpu_ms(command, bank.environment)
                    if number:  # the first time the disk is asked as well
                        seen[name].append(taken)
    figures = {name: Figure(name, "ms", tuple(values)) for name, values in seen.items()}
    promises = tuple(at_most(name, figures[name], MAX_MS) for name in (HELP, OVERVIEW, BALANCE))
    about = "Processor time, user and system together, until the command has ended."
    return [Table("Starting a command", about, tuple(figures.values()), promises)]


def cpu_ms(command: list[str], environment: Mapping[str, str]) -> float:
    """Run a command that must succeed and return its CPU time, in milliseconds."""
    process = subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1_000
