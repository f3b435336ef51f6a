"""Dependencies of jobs, as scontrol and squeue print them, and the ended jobs that they refer to.

An example is `afterok:31(unfulfilled),after:15_*+10(unfulfilled)`. Met dependencies are not
printed. All parts between `,` must be met; of parts between `?` one is enough; never both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import msgspec

from fairbank.cluster.dependency import Dependencies, Dependency, DependencyState
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import read_rows
from fairbank.slurm.parsers.pending_jobs import COMMAND, job_lines
from fairbank.slurm.parsers.values import UNFINISHED_STATES

FIELD = "Dependency"
_STATE = r"(?:\(([a-z]{1,16})\))?"
_KIND = re.compile(r"[a-z]{1,32}", re.ASCII)
_SINGLETON = re.compile(rf"singleton{_STATE}", re.ASCII)
_JOB = re.compile(rf"(\d{{1,10}})(?:_(?:(\d{{1,7}})|\*))?(?:\+(\d{{1,9}}))?{_STATE}", re.ASCII)
_MET = {each.value: each for each in DependencyState}


def read_dependencies(text: str) -> Dependencies:
    """Read the dependencies.

    A text that cannot be read stands for itself, so that the job is explained.
    """
    if not text:
        return Dependencies()
    any_of = "?" in text
    try:
        return Dependencies(
            text,
            tuple(
                each for part in text.split("?" if any_of else ",") for each in _parse_part(part)
            ),
            any_of,
        )
    except InvalidInput:
        return Dependencies(text)


def _parse_part(text: str) -> Iterator[Dependency]:
    """Parse `afterok:31(failed)` as printed; `afterok:31:32` and `31` as users may write it."""
    if singleton := _SINGLETON.fullmatch(text):
        yield Dependency(kind="singleton", state=_parse_state(singleton[1]))
        return
    kind, colon, jobs = text.partition(":")
    if not colon:
        kind, jobs = "afterany", text
    if not _KIND.fullmatch(kind):
        raise InvalidInput(f"{words.quoted(text)} is no dependency", field=FIELD)
    for job_text in jobs.split(":"):
        match = _JOB.fullmatch(job_text)
        if match is None:
            raise InvalidInput(f"{words.quoted(job_text)} is no job to depend on", field=FIELD)
        number, task, minutes, state = match.groups()
        yield Dependency(
            kind=kind,
            job=int(number),
            task=None if task is None else int(task),
            all_tasks="_*" in job_text,
            minutes=int(minutes or 0),
            state=_parse_state(state),
        )


def _parse_state(state: str | None) -> DependencyState:
    if state is None:
        return DependencyState.NOT_YET
    if state in _MET:
        return _MET[state]
    raise InvalidInput(
        f"{words.quoted(state)} is not how far a dependency can have come", field=FIELD
    )


_NUMBERS = re.compile(r"JobId=(\d{1,10}) (?:ArrayJobId=(\d{1,10}) )?", re.ASCII)


class EndedJob(msgspec.Struct, frozen=True):
    """Job that is over and that slurmctld remembers (MinJobAge, 300 s by default).

    `state` is Slurm's word. `task` is None for no task, and for the tasks of an array that never
    started.
    """

    job_id: int
    array: int | None
    task: int | None
    state: str


def read_ended_jobs(text: str, numbers: Collection[int]) -> tuple[EndedJob, ...]:
    """Read the ended jobs and arrays with these numbers: `scontrol --oneliner show job`.

    Lines that cannot be read are left out; the reader of the queue reports them.
    """
    known = {str(number) for number in numbers}
    lines = (
        line
        for line in text.split("\n")
        if (match := _NUMBERS.match(line)) and known & set(match.groups())
    )
    return read_rows(COMMAND, job_lines("\n".join(lines)), _ended_job).rows


def _ended_job(cells: dict[str, str]) -> EndedJob | None:
    state = words.state(cells["JobState"], "JobState")
    if state in UNFINISHED_STATES:
        return None
    array, task = cells.get("ArrayJobId"), cells["ArrayTaskId"]
    return EndedJob(
        job_id=words.number(cells["JobId"], "JobId", most=ids.JOB_ID_MAX),
        array=words.number(array, "ArrayJobId", most=ids.JOB_ID_MAX) if array else None,
        task=words.number(task, "ArrayTaskId") if task.isdecimal() else None,
        state=state,
    )
