"""What the JSON of all versions has in common: a list of jobs, each read by itself, so that a strange one spoils no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.values import AccountingJob, ParsedRows, Queued, Unreadable

Row = TypeVar("Row")
Value = TypeVar("Value")


NOT_COUNTED = -2
"""What 24.11 tells of energy where no node has a meter: slurmctld's NO_VAL64. 22.05 tells null."""


class JsonTres(msgspec.Struct, frozen=True):
    """So much of a TRES; memory in MiB. Nothing is told of one that was not counted, such as energy where no node has a meter."""

    type: str
    name: str | None
    count: int | None


class _Owner(msgspec.Struct, frozen=True):
    user: str | None = None


class JsonAssociation(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a job is, and where it ran. Without its user accounting still knows the association."""

    job_id: int
    account: str
    partition: str
    qos: str | None = None
    user: str | None = None
    association: _Owner = _Owner()


class _Jobs(msgspec.Struct, frozen=True):
    jobs: list[msgspec.Raw]


def of_each(
    command: str, text: bytes, shape: type[Row], reader: Callable[[Row], Value]
) -> ParsedRows[Value]:
    """Each job as a value. Raises InvalidInput when the whole is not the JSON of this command."""
    try:
        found = msgspec.json.decode(text, type=_Jobs).jobs
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise InvalidInput(
            f"{command} --json: {bad}", field=command, remedy="is it Slurm's, and built with JSON?"
        ) from bad
    rows: list[Value] = []
    unreadable: list[Unreadable] = []
    decode = msgspec.json.Decoder(shape).decode
    for number, raw in enumerate(found, 1):
        try:
            rows.append(reader(decode(raw)))
        except InvalidInput as bad:
            unreadable.append(Unreadable(f"{command} --json", number, bad.field or "", bad.message))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
            why, _, where = str(bad).partition(" - at `")
            unreadable.append(
                Unreadable(
                    f"{command} --json", number, where.rstrip("`").removeprefix("$.") or "job", why
                )
            )
    return ParsedRows(tuple(rows), tuple(unreadable))


def job(
    row: JsonAssociation,
    *,
    submitted: int,
    start: int,
    end: int,
    elapsed: int,
    state: str,
    limit_minutes: int | None,
    tres: Sequence[JsonTres],
    restart: int | None,
) -> AccountingJob:
    """A job from its parts. Raises InvalidInput, naming the field."""
    return AccountingJob(
        job_id=_within(row.job_id, 1, ids.JOB_ID_MAX, "job_id"),
        submitted=words.submitted(words.epoch(submitted, "time.submission"), "time.submission"),
        start=words.epoch(start, "time.start"),
        end=words.epoch(end, "time.end"),
        elapsed=_within(elapsed, 0, 10**10, "time.elapsed"),
        state=words.state(state, "state"),
        user=row.user or row.association.user or "",
        owner=None,
        account=ids.name(row.account, field="account"),
        partition=row.partition and ids.name(row.partition, field="partition"),
        qos=ids.name(row.qos, field="qos") if row.qos else None,
        limit_seconds=None
        if limit_minutes is None
        else _within(limit_minutes, 0, 10**9, "time.limit") * 60,
        tres=words.tres(
            ",".join(_one(each) for each in tres if each.count not in (None, NOT_COUNTED)), "tres"
        ),
        restart=restart,
    )


def queued(job_id: int, submitted: int, state: str) -> Queued:
    """A job that slurmctld knows. Raises InvalidInput, naming the field."""
    at = words.submitted(words.epoch(submitted, "submit_time"), "submit_time")
    return Queued(_within(job_id, 1, ids.JOB_ID_MAX, "job_id"), at, words.state(state, "job_state"))


def _one(each: JsonTres) -> str:
    return f"{each.type}{f'/{each.name}' if each.name else ''}={each.count}"


def _within(value: int, low: int, high: int, field: str) -> int:
    if low <= value <= high:
        return value
    raise InvalidInput(f"{value} is not from {low} to {high}", field=field)
