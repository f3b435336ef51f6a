"""Jobs as the short commands see them, and the choice between the two workload managers."""

from __future__ import annotations

import os
import re
import time
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fairbank.cli.framework.host import exit_text
from fairbank.core.errors import NotFound, Unavailable
from fairbank.core.final_state import FINAL_STATES, REQUEUED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairbank.cli.commands.queue.embedded import EmbeddedManager
    from fairbank.cli.commands.queue.slurm import SlurmManager
    from fairbank.cli.framework.context import Context

    Manager: TypeAlias = EmbeddedManager | SlurmManager

_NAME = re.compile(r"[1-9][0-9]{0,9}(_[0-9]{1,9})?", re.ASCII)
QUOTE_SECONDS = 2.0
"""Time that a bank has to tell the price of a job, which is submitted already."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 1.0


class JobInfo(NamedTuple):
    """Job, or task of an array, that waits, runs or has ended.

    `name` is `7` or `7_3`. `exit_code` is code and signal. `limit` is seconds; None for none.
    `std_out` and `std_err` are paths; None if they are not known.
    """

    name: str
    user: str
    state: str
    exit_code: tuple[int, int]
    std_out: str | None
    std_err: str | None
    account: str | None = None
    partition: str = ""
    reason: str = ""
    cpus: int = 1
    limit: int | None = None
    tres: str = ""

    @property
    def has_ended(self) -> bool:
        """True in a final state. A requeued job waits again."""
        return self.state in FINAL_STATES and self.state != REQUEUED

    @property
    def status(self) -> int:
        """Exit code as a shell has it: 128 + signal, and 1 for a job that was stopped before it
        could fail.
        """
        code, signal = self.exit_code
        return code or (128 + signal if signal else int(self.state != "COMPLETED"))

    @property
    def end(self) -> str:
        """Final state in words, such as `FAILED, exit code 3`."""
        code, signal = self.exit_code
        if signal and not code:
            return f"{self.state}, {exit_text(code, signal)}"
        return f"{self.state}, exit code {code}" if code else self.state


def job_name(text: str) -> str:
    """Return the name of a job, for the parser."""
    if _NAME.fullmatch(text):
        return text
    raise ArgumentTypeError(f"{text[:40]!r} is not a job: a number such as 12, or 12_3 of an array")


def unknown_job(name: str) -> NotFound:
    """Return the error of a job that neither queue nor accounting has."""
    return NotFound(f"there is no job {name}", field="JOB", remedy="list them: fairbank queue")


def find_manager() -> Manager:
    """Return the embedded workload manager where a cluster is configured, else Slurm.

    Raises NotFound if there is neither.
    """
    from fairbank.wlm.client.connection import cluster_directory

    directory = cluster_directory()
    is_named = os.environ.get("FAIRBANK_CLUSTER", "").startswith("/")
    if is_named or os.path.exists(os.path.join(directory, "wlm.toml")):
        from fairbank.cli.commands.queue.embedded import EmbeddedManager

        return EmbeddedManager(directory)
    from shutil import which

    if which("sbatch"):
        from fairbank.cli.commands.queue.slurm import SlurmManager

        return SlurmManager()
    raise NotFound(
        f"there is no cluster in {directory}, and no Slurm on PATH",
        remedy="start a queue on this host: fairbank cluster up",
    )


def wait_for_ends(
    context: Context,
    manager: Manager,
    names: Sequence[str],
    print_new: Callable[[], None] | None = None,
) -> list[JobInfo]:
    """Wait until jobs have ended, also over restarts of the controller, and return them.

    Args:
        context: the command.
        manager: the workload manager.
        names: the jobs.
        print_new: called before each question, and once after the end.

    Raises:
        NotFound: there is no such job.
    """
    pause, is_reported = _FIRST_PAUSE_SECONDS, False
    while True:
        try:
            jobs = [job for name in names for job in manager.jobs(name)]
            if all(job.has_ended for job in jobs):
                break
        except Unavailable as error:
            # A controller that starts again has all jobs; one that was never there stays away.
            if not is_reported:
                context.note(f"! {error.message}; retrying")
            is_reported = True
        if print_new:
            print_new()
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
    if print_new:
        print_new()
    return jobs
