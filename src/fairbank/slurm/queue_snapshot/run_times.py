"""How long jobs of the last weeks ran, as accounting has it: what likely starts are drawn from (docs/decisions/0030)."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.scheduling.explain.run_times import RunTimeHistory
from fairbank.slurm.parsers.delimited import PIPE, read, records
from fairbank.slurm.parsers.execution import Cells, Execution, is_step, read_execution
from fairbank.slurm.parsers.values import ParsedRows

DAYS = 14
"""So far back accounting is asked: habits change, and a user's last hundred jobs are all that count."""
FILE = "history"
"""The name under which the answer is kept beside those of `asking`."""
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
"""None that users may write freely."""
QUESTION = (
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


def read_past(text: str, now: int) -> ParsedRows[Execution]:
    """The answer's jobs that ran and were over by `now`, in the order in which they ended; those without a time limit are left out."""

    def over(cells: Cells) -> Execution | None:
        if is_step(cells):
            return None
        job = read_execution(cells)
        return (
            job if job.user and job.limit and job.elapsed is not None and _end(job) <= now else None
        )

    found = read("sacct", records("sacct", text, COLUMNS, PIPE), over)
    return ParsedRows(tuple(sorted(found.rows, key=_end)), found.unreadable)


def _end(job: Execution) -> int:
    return (job.submitted if job.start is None else job.start) + (job.elapsed or 0) + job.suspended


def history_of(ended: Sequence[Execution]) -> RunTimeHistory[str]:
    """What these tell of how much of their time limits users' jobs take."""
    history: RunTimeHistory[str] = RunTimeHistory()
    for job in ended:
        if job.elapsed is not None and job.limit:
            history.add(job.user, job.elapsed, job.limit)
    return history
