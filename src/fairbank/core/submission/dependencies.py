"""Dependency expressions: the jobs that a job waits for, as `sbatch --dependency` takes them.

All parts between commas must be met; of parts between question marks one is enough; never both.
Source: docs/reference/slurm-rules.md, "Dependencies".
"""

from __future__ import annotations

import re
from itertools import chain
from typing import NamedTuple

from fairbank.core.errors import InvalidInput

_KINDS = frozenset(
    "after afterany afterok afternotok aftercorr afterburstbuffer expand singleton".split()
)
_KIND = re.compile(r"[a-z]{1,32}", re.ASCII)
_JOB = re.compile(r"(\d{1,10})(?:_(?:(\d{1,7})|(\*)))?(?:\+(\d{1,9}))?", re.ASCII)


class RequestedDependency(NamedTuple):
    """One dependency on another job.

    kind       afterok or another of sbatch's words
    job        id of the job or of the array; None for singleton
    task       id of the array task, if it concerns one task
    all_tasks  whether it concerns every task of the array
    minutes    delay of `after`
    """

    kind: str
    job: int | None = None
    task: int | None = None
    all_tasks: bool = False
    minutes: int = 0


class DependencyExpression(NamedTuple):
    """Dependencies of a job: all of them must be met, or one of them with `any_of`."""

    items: tuple[RequestedDependency, ...]
    any_of: bool = False


def parse_dependencies(text: str, *, field: str) -> DependencyExpression:
    """Parse an expression such as `afterok:31:32,after:15_4+10`, as slurmctld accepts it.

    Raises:
        InvalidInput: the expression is invalid or has an unknown kind; the error names `field`.
    """
    parts, any_of = split_dependencies(text)
    terms = [parse_term(part) for part in parts]
    items = tuple(chain.from_iterable(filter(None, terms)))
    if (
        None in terms
        or not {item.kind for item in items} <= _KINDS
        or (any_of and any(part[0].isdigit() for part in parts))
    ):
        raise InvalidInput(
            f"{text[:40]!a} is not a list of dependencies",
            field=field,
            remedy="write for example afterok:31, after:31+10, afterany:31_4?singleton",
        )
    return DependencyExpression(items, any_of)


def split_dependencies(text: str) -> tuple[list[str], bool]:
    """Return the parts of an expression, and whether one of them is enough."""
    any_of = "?" in text
    return text.split("?" if any_of else ","), any_of


def parse_term(text: str) -> tuple[RequestedDependency, ...] | None:
    """Parse one part of an expression, of whatever kind; None if it has another form.

    `afterok:31:32` are two dependencies, and `31` is `afterany:31`.
    """
    if text == "singleton":
        return (RequestedDependency(kind=text),)
    kind, colon, jobs = text.partition(":")
    if not colon:
        kind, jobs = "afterany", text
    matches = [_JOB.fullmatch(job) for job in jobs.split(":")]
    known = [match for match in matches if match is not None]
    if len(known) < len(matches) or not _KIND.fullmatch(kind):
        return None
    return tuple(
        RequestedDependency(
            kind=kind,
            job=int(match[1]),
            task=None if match[2] is None else int(match[2]),
            all_tasks=match[3] is not None,
            minutes=int(match[4] or 0),
        )
        for match in known
    )
