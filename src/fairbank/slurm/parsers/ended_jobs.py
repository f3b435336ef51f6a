"""Jobs that are over and that slurmctld has not forgotten yet (MinJobAge, usually 300 s): `scontrol --oneliner show job`."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from fairbank.core import ids
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.delimited import read_rows
from fairbank.slurm.parsers.jobs import STATES_WITH_NODES
from fairbank.slurm.parsers.pending_jobs import COMMAND, job_lines

_NUMBERS = re.compile(r"JobId=(\d{1,10}) (?:ArrayJobId=(\d{1,10}) )?", re.ASCII)


class EndedJob(msgspec.Struct, frozen=True):
    """`state`: how it ended, in Slurm's word. `task` None: no task, or those of an array together that never started."""

    job_id: int
    array: int | None
    task: int | None
    state: str


def read_ended_jobs(text: str, numbers: Collection[int]) -> tuple[EndedJob, ...]:
    """Of the jobs and arrays with these numbers. Lines that cannot be read are left out: who reads the queue tells them."""
    known = {str(number) for number in numbers}
    lines = (
        line
        for line in text.split("\n")
        if (match := _NUMBERS.match(line)) and known & set(match.groups())
    )
    return read_rows(COMMAND, job_lines("\n".join(lines)), _ended_job).rows


def _ended_job(cells: dict[str, str]) -> EndedJob | None:
    state = words.state(cells["JobState"], "JobState")
    if state == "PENDING" or state in STATES_WITH_NODES:
        return None
    array, task = cells.get("ArrayJobId"), cells["ArrayTaskId"]
    return EndedJob(
        job_id=words.number(cells["JobId"], "JobId", most=ids.JOB_ID_MAX),
        array=words.number(array, "ArrayJobId", most=ids.JOB_ID_MAX) if array else None,
        task=words.number(task, "ArrayTaskId") if task.isdecimal() else None,
        state=state,
    )
