"""Run times of the last weeks' jobs from accounting, for ranges of starts (docs/decisions/0030)."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.scheduling.explain.run_times import RunTimeHistory
from fairbank.slurm.parsers.columns import PIPE, read_rows, split_records
from fairbank.slurm.parsers.traces.execution import Cells, Execution, is_step, read_execution
from fairbank.slurm.parsers.values import ParsedRows

DAYS = 14
"""Days back: habits change, and only a user's last hundred jobs count."""
ACCOUNTING_TIMEOUT_SECONDS = 10.0
"""Time limit for sacct: the user waits for the answer at a terminal."""
BRIEF_TIMEOUT_SECONDS = 2.0
"""Time limit of each command where no likely start was requested: the list must not wait long."""
FILE_NAME = "history"
"""Name of the recorded output, next to that of `queries`."""
COLUMNS = (
    "JobIDRaw",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "State",
    "User",
    "TimelimitRaw",
    "AllocTRES",
)
"""None that users write freely."""
COMMAND = (
    "sacct",
    "--allusers",
    "--allocations",
    "--duplicates",
    "--noheader",
    "--parsable2",
    f"--starttime=now-{DAYS}days",
    f"--format={','.join(COLUMNS)}",
)
"""Times must be in UTC."""


def read_history(text: str, now: int) -> ParsedRows[Execution]:
    """Read jobs that ran and ended by `now`, in the order of their ends; those without a limit are
    left out.
    """

    def ended(cells: Cells) -> Execution | None:
        if is_step(cells):
            return None
        job = read_execution(cells)
        if job.resized or job.elapsed is None or not (job.user and job.limit):
            return None  # the last record of a resized job has its start and its whole time
        return job if _end(job) <= now else None

    parsed = read_rows("sacct", split_records("sacct", text, COLUMNS, PIPE), ended)
    return ParsedRows(tuple(sorted(parsed.rows, key=_end)), parsed.unreadable)


def _end(job: Execution) -> int:
    return (job.submitted if job.start is None else job.start) + (job.elapsed or 0) + job.suspended


def run_time_history(ended: Sequence[Execution]) -> RunTimeHistory[str]:
    """Return the parts of their time limits that users' jobs took."""
    history: RunTimeHistory[str] = RunTimeHistory()
    for job in ended:
        if job.elapsed is not None and job.limit:
            history.add(job.user, job.elapsed, job.limit)
    return history
