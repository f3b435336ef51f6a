"""What a job waits for of others, as scontrol and squeue tell it: `afterok:31(unfulfilled),after:15_*+10(unfulfilled)`.

What is met already is not told. `,` stands between things that must all be so, `?` between those of which one is enough, never both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fairbank.cluster.dependency import Dependencies, Dependency, DependencyState
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import words

FIELD = "Dependency"
_STATE = r"(?:\(([a-z]{1,16})\))?"
_KIND = re.compile(r"[a-z]{1,32}", re.ASCII)
_SINGLETON = re.compile(rf"singleton{_STATE}", re.ASCII)
_JOB = re.compile(rf"(\d{{1,10}})(?:_(?:(\d{{1,7}})|\*))?(?:\+(\d{{1,9}}))?{_STATE}", re.ASCII)
_MET = {each.value: each for each in DependencyState}


def read_dependencies(text: str) -> Dependencies:
    """A text that cannot be read stands for itself: the job is to be explained all the same."""
    if not text:
        return Dependencies()
    any_of = "?" in text
    try:
        return Dependencies(
            text,
            tuple(each for part in text.split("?" if any_of else ",") for each in _of_kind(part)),
            any_of,
        )
    except InvalidInput:
        return Dependencies(text)


def _of_kind(text: str) -> Iterator[Dependency]:
    """`afterok:31(failed)`, as it is told; `afterok:31:32` and `31`, as people may write it."""
    if alone := _SINGLETON.fullmatch(text):
        yield Dependency(kind="singleton", state=_met(alone[1]))
        return
    kind, colon, jobs = text.partition(":")
    if not colon:
        kind, jobs = "afterany", text
    if not _KIND.fullmatch(kind):
        raise InvalidInput(f"{words.shown(text)} is no dependency", field=FIELD)
    for each in jobs.split(":"):
        match = _JOB.fullmatch(each)
        if match is None:
            raise InvalidInput(f"{words.shown(each)} is no job to depend on", field=FIELD)
        number, task, minutes, state = match.groups()
        yield Dependency(
            kind=kind,
            job=int(number),
            task=None if task is None else int(task),
            all_tasks="_*" in each,
            minutes=int(minutes or 0),
            state=_met(state),
        )


def _met(state: str | None) -> DependencyState:
    if state is None:
        return DependencyState.NOT_YET
    if state in _MET:
        return _MET[state]
    raise InvalidInput(
        f"{words.shown(state)} is not how far a dependency can have come", field=FIELD
    )
