"""Program `fairbank-slurm`, which runs the command that its link is named after."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from fairbank.core.errors import FairbankError, NotFound, Unavailable
from fairbank.wlm.commands.slurm_errors import print_error, print_failure

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PROGRAM = "fairbank-slurm"
MODULES: Mapping[str, str] = {
    "sacct": "fairbank.wlm.commands.tables.sacct",
    "sacctmgr": "fairbank.wlm.commands.tables.sacctmgr",
    "salloc": "fairbank.wlm.commands.job_commands",
    "sattach": "fairbank.wlm.commands.steps.attachment",
    "sbatch": "fairbank.wlm.commands.job_commands",
    "sbcast": "fairbank.wlm.commands.steps.sbcast",
    "scancel": "fairbank.wlm.commands.scancel",
    "scontrol": "fairbank.wlm.commands.scontrol",
    "sdiag": "fairbank.wlm.commands.tables.show",
    "seff": "fairbank.wlm.commands.tables.seff",
    "sinfo": "fairbank.wlm.commands.tables.sinfo",
    "sprio": "fairbank.wlm.commands.tables.priorities",
    "squeue": "fairbank.wlm.commands.tables.squeue",
    "srun": "fairbank.wlm.commands.job_commands",
    "sshare": "fairbank.wlm.commands.tables.priorities",
    "sstat": "fairbank.wlm.commands.tables.sacct",
}
"""Module of each command."""
ABSENT: Mapping[str, str] = {
    "scrontab": "use cron, which calls sbatch",
    "sreport": "fairbank usage reports what was used",
    "strigger": "there are no triggers",
    "sview": "squeue and sinfo show jobs and nodes",
}
"""Commands that there are not, and the reason: the name must not reach a Slurm of this host."""
_FAILURES = {"squeue": "slurm_load_jobs error: ", "sinfo": "slurm_load_partitions error: "}
"""Start of the line with Slurm's sentence for what the controller refuses."""


class _ErrorOutput(io.FileIO):
    """Error output that drops what cannot be written: a terminal that has gone must not keep a
    command from giving its job back.
    """

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(memoryview(data))


def main() -> NoReturn:
    """Run the command that this process is named after; as `fairbank-slurm`, the first argument."""
    # Everything is written. Python would need some milliseconds to take its modules apart.
    os._exit(run_with_standard_files(os.path.basename(sys.argv[0]), sys.argv[1:]))


def run_with_standard_files(name: str, words: Sequence[str]) -> int:
    """Run a command with the standard files of this process, and return its exit code."""
    _open_standard_files()
    if name == PROGRAM and words:
        name, *words = words
    return run(name, words)


def _open_standard_files() -> None:
    """Open the standard files, also those that are closed: a socket must not get their number,
    since it would be read as the input. What is written to standard output must still fail.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Gets the lowest number that is free.
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    sys.stdin = open(0, errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", errors="surrogateescape", closefd=False)  # noqa: SIM115
    errors = _ErrorOutput(2, "w", closefd=False)
    sys.stderr = io.TextIOWrapper(errors, errors="backslashreplace", write_through=True)


def run(name: str, words: Sequence[str]) -> int:
    """Run a command such as `squeue`, and return its exit code. Errors are printed."""
    if name in ABSENT:
        print(f"{name}: error: {name} is not supported: {ABSENT[name]}", file=sys.stderr)
        return 1
    if name not in MODULES:
        print(f"{PROGRAM}: error: no command {name!r}: {', '.join(MODULES)}", file=sys.stderr)
        return 1
    try:
        code = _call(name, list(words))
        sys.stdout.flush()
        return code
    except OSError as error:
        # Nothing may be left that Python would write at exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # else the reader has ended, as `head` does
            print(f"{name}: error: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        with suppress(OSError):
            sys.stdout.flush()
        # Handlers of `ending_signals` name the signal, that of Python for SIGINT does not.
        return 128 + (error.args[0] if error.args else signal.SIGINT)


def _call(name: str, words: list[str]) -> int:
    try:
        code: int = import_module(MODULES[name]).run(name, words)
        return code
    except (NotFound, Unavailable) as error:
        print_failure(name, error, _FAILURES.get(name, f"{name}: error: "))
    except FairbankError as error:
        print_error(name, error)
    return 1
