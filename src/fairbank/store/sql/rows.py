"""Conversion between table rows and values; columns are in the order of `schema`.

A row that represents no value (an edited file) raises Corrupt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeVar

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Entry
from fairbank.bank.project import Member, Project, Role
from fairbank.bank.query import UserRow
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.bank.token import Token
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.errors import Corrupt

Row = Sequence[Any]
E = TypeVar("E", bound=Enum)


class _Words(dict[str, E]):
    """Members of an enumeration by their value; faster than the enumeration's own lookup, which
    matters for long journals.
    """

    def __init__(self, kind: type[E], noun: str) -> None:
        super().__init__({each.value: each for each in kind})
        self._noun = noun

    def __missing__(self, word: object) -> E:
        raise Corrupt(f"{word!r} is no {self._noun}", remedy="fairbank audit verify")


_ALLOCATION_STATES = _Words(AllocationState, "state of an allocation")
_RUN_STATES = _Words(RunState, "state of a run")
_ROLES = _Words(Role, "role")


def _flag(cell: object) -> bool:
    """Return the boolean of SQLite's 0 or 1. Any other value is corrupt, not false."""
    if cell is True or cell == 1:
        return True
    if cell is False or cell == 0:
        return False
    raise Corrupt(f"{cell!r} is neither true nor false", remedy="fairbank audit verify")


def _in_row(what: str, bad: Corrupt) -> Corrupt:
    return Corrupt(f"the row of {what} cannot be read: {bad.message}", remedy=bad.remedy)


def project_of(row: Row) -> Project:
    number, gname, gid, account, parent, removed = row
    return Project(
        id=number, gname=gname, gid=gid, account=account, parent=parent, removed=_flag(removed)
    )


def project_row(project: Project) -> tuple[Any, ...]:
    return (
        project.id,
        project.gname,
        project.gid,
        project.account,
        project.parent,
        project.removed,
    )


def member_of(row: Row) -> Member:
    project, uid, role = row
    try:
        return Member(project, uid, _ROLES[role])
    except Corrupt as bad:
        raise _in_row(f"user {uid} in project {project}", bad) from bad


def member_row(member: Member) -> tuple[Any, ...]:
    return (member.project, member.uid, member.role._value_)


def allocation_of(row: Row) -> Allocation:
    (
        number,
        project,
        resource,
        category,
        start,
        end,
        state,
        shared,
        limit,
        deposited,
        charged,
        held,
        overrun,
        seq,
        link,
    ) = row
    try:
        known, divided = _ALLOCATION_STATES[state], _flag(shared)
    except Corrupt as bad:
        raise _in_row(f"allocation {number}", bad) from bad
    return Allocation(
        id=number,
        project=project,
        resource=resource,
        category=category,
        start=start,
        end=end,
        state=known,
        shared=divided,
        credit_limit=limit,
        deposited=deposited,
        charged=charged,
        held=held,
        overrun=overrun,
        seq=seq,
        link=link,
    )


def allocation_row(allocation: Allocation) -> tuple[Any, ...]:
    return (
        allocation.id,
        allocation.project,
        allocation.resource,
        allocation.category,
        allocation.start,
        allocation.end,
        allocation.state._value_,
        allocation.shared,
        allocation.credit_limit,
        allocation.deposited,
        allocation.charged,
        allocation.held,
        allocation.overrun,
        allocation.seq,
        allocation.link,
    )


def user_of(row: Row) -> UserRow:
    allocation, uid, charged, held, cap = row
    return UserRow(allocation, uid, UserSums(charged, held, cap))


def user_row(user: UserRow) -> tuple[Any, ...]:
    return (user.allocation, user.uid, user.sums.charged, user.sums.held, user.sums.cap)


def run_of(row: Row) -> RunRecord:
    number, cluster, job_id, submitted, restart, project, allocation, owner, partition, state = row[
        :10
    ]
    held, charged, written_off, refunded, start, until, ended, outcome, elapsed, set_by = row[10:20]
    try:
        known = _RUN_STATES[state]
    except Corrupt as bad:
        raise _in_row(f"run {cluster}/{job_id} of allocation {allocation}", bad) from bad
    return RunRecord(  # by position: so many names take four times as long
        number,
        Run(cluster, job_id, submitted, restart),
        project,
        allocation,
        owner,
        partition,
        known,
        held,
        start,
        until,
        set_by,
        charged,
        written_off,
        refunded,
        ended,
        outcome,
        elapsed,
        _job_details_of(row[20:]),
    )


def run_row(record: RunRecord) -> tuple[Any, ...]:
    return (
        record.id,
        *record.run,
        record.project,
        record.allocation,
        record.owner,
        record.partition,
        record.state._value_,
        record.held,
        record.charged,
        record.written_off,
        record.refunded,
        record.start,
        record.until,
        record.ended,
        record.outcome,
        record.elapsed_seconds,
        record.set_by,
        *job_details_row(record.job_details),
    )


_UNTOLD = (None,) * len(JobDetails.__struct_fields__)


def _job_details_of(cells: Row) -> JobDetails | None:
    """Return the job details, or None if all cells are empty."""
    if tuple(cells) == _UNTOLD:
        return None
    name, qos, nodes, cpus, tres, limit, status, used = cells
    return JobDetails(
        name=name,
        qos=qos,
        nodes=nodes,
        cpus=cpus,
        tres=tres,
        limit_seconds=limit,
        exit_status=status,
        cpu_seconds=used,
    )


def job_details_row(told: JobDetails | None) -> tuple[Any, ...]:
    """Return the cells of the job details."""
    if told is None:
        return _UNTOLD
    return (
        told.name,
        told.qos,
        told.nodes,
        told.cpus,
        told.tres,
        told.limit_seconds,
        told.exit_status,
        told.cpu_seconds,
    )


_DIGEST, _LINK = (Entry.__struct_fields__.index(name) for name in ("digest", "link"))


def entry_of(row: Row) -> Entry:
    """Return the entry of a row. Its fields have the order of the columns, so msgspec builds and
    checks it in a quarter of the time that keyword arguments take.
    """
    if isinstance(row[_LINK], str) or isinstance(
        row[_DIGEST], str
    ):  # msgspec would take text for base64
        raise Corrupt(
            f"entry {row[0]} cannot be read: its digest or its link is text",
            remedy="fairbank audit verify",
        )
    try:
        return msgspec.convert(tuple(row), Entry)
    except msgspec.ValidationError as bad:
        raise _no_entry(row, str(bad)) from bad


_COLUMN = re.compile(r".* - at `\$\[(\d+)\]`", re.DOTALL)


def _no_entry(row: Row, said: str) -> Corrupt:
    """Return the error for a corrupt entry, with column names instead of msgspec's positions."""
    match = _COLUMN.fullmatch(said)
    why = (
        f"its {Entry.__struct_fields__[int(match[1])]} is {str(row[int(match[1])])[:40]!r}"
        if match
        else said
    )
    book = f"allocation {row[1]}" if row[1] else "the registry"
    return Corrupt(
        f"entry {row[0]} of {book} cannot be read: {why}", remedy="fairbank audit verify"
    )


def entry_row(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.id,
        entry.book,
        entry.seq,
        entry.at,
        entry.kind._value_,
        entry.amount,
        entry.run,
        entry.owner,
        entry.actor,
        entry.acting_as,
        entry.key,
        entry.digest,
        entry.deposited,
        entry.charged,
        entry.held,
        entry.credit_limit,
        entry.overrun,
        entry.comment,
        entry.details,
        entry.link,
    )


def token_of(row: Row) -> Token:
    number, digest, uid, label, scopes, created, expires, revoked, parent = row
    if not isinstance(scopes, str):  # SQLite keeps anything in any column
        raise Corrupt(
            f"token {number} cannot be read: {scopes!r} are no scopes",
            remedy="fairbank audit verify",
        )
    return Token(
        id=number,
        digest=digest,
        uid=uid,
        label=label,
        scopes=tuple(scopes.split(" ")) if scopes else (),
        created=created,
        expires=expires,
        revoked=revoked,
        parent=parent,
    )


def token_row(token: Token) -> tuple[Any, ...]:
    scopes = " ".join(token.scopes)
    return (
        token.id,
        token.digest,
        token.uid,
        token.label,
        scopes,
        token.created,
        token.expires,
        token.revoked,
        token.parent,
    )
