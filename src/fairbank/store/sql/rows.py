"""Conversion between table rows and values; columns are in the order of `schema`.

A row that represents no value (an edited file) raises Corrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple
from sqlalchemy import Table

from fairbank.bank.allocation import Allocation, AllocationState, AllocationTerms
from fairbank.bank.entry import Entry
from fairbank.bank.project import Member, Project, Role
from fairbank.bank.query import UserRow
from fairbank.bank.run import ReportedRun, RunEnd, RunRecord, RunState, UserSums
from fairbank.bank.token import Token
from fairbank.cluster.job import JobDetails, Run
from fairbank.cluster.share import ShareRecord
from fairbank.core.errors import Corrupt
from fairbank.core.time import Instant
from fairbank.core.validation import ValidationFault
from fairbank.store import schema

Row = Sequence[Any]
E = TypeVar("E", bound=Enum)


class _Words(dict[str, E]):
    """Members of an enumeration by their value; faster than the enumeration's own lookup, which
    matters for long journals.
    """

    def __init__(self, kind: type[E], noun: str) -> None:
        super().__init__({member.value: member for member in kind})
        self._noun = noun

    def __missing__(self, word: object) -> E:
        raise Corrupt(f"{word!r} is not a {self._noun}", remedy="fairbank audit verify")


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


def member_of(row: Row) -> Member:
    project, uid, role = row
    try:
        return Member(project, uid, _ROLES[role])
    except Corrupt as bad:
        raise _in_row(f"user {uid} in project {project}", bad) from bad


def _member_row(member: Member) -> tuple[Any, ...]:
    return (member.project, member.uid, member.role._value_)


def allocation_of(row: Row) -> Allocation:
    try:
        state, shared = _ALLOCATION_STATES[row[6]], _flag(row[7])
    except Corrupt as bad:
        raise _in_row(f"allocation {row[0]}", bad) from bad
    terms = (*row[1:6], shared, *row[8:11])
    return Allocation(row[0], AllocationTerms(*terms), state, *row[11:])


def allocation_row(allocation: Allocation) -> tuple[Any, ...]:
    number, _, state, *sums = astuple(allocation)
    terms = astuple(allocation.terms)
    return (number, *terms[:5], state._value_, *terms[5:], *sums)


def user_of(row: Row) -> UserRow:
    allocation, uid, charged, held, cap = row
    return UserRow(allocation, uid, UserSums(charged, held, cap))


def _user_row(user: UserRow) -> tuple[Any, ...]:
    return (user.allocation, user.uid, *astuple(user.sums))


def run_of(row: Row) -> RunRecord:
    """Return the run of a row."""
    number, cluster, job_id, submitted, restart, project, allocation, owner, partition, state = row[
        :10
    ]
    held, charged, written_off, refunded, start, until, ended, outcome, elapsed, set_by = row[10:20]
    try:
        run_state = _RUN_STATES[state]
    except Corrupt as bad:
        raise _in_row(f"run {cluster}/{job_id} of allocation {allocation}", bad) from bad
    return RunRecord(  # by position: so many names take four times as long
        number,
        ReportedRun(
            Run(cluster, job_id, submitted, restart),
            project,
            partition,
            start,
            until,
            _job_details_of(row[20:]),
        ),
        allocation,
        owner,
        run_state,
        held,
        set_by,
        charged,
        written_off,
        refunded,
        _end_of(ended, outcome, elapsed),
    )


def _end_of(ended: Any, outcome: Any, elapsed: Any) -> RunEnd | None:
    """Return the end of a run. If an edited row lacks a part of it, the part is -1 or empty, as in
    no end: so the audit finds the row, and it can be shown.
    """
    if ended is None and outcome is None and elapsed is None:
        return None
    return RunEnd(
        "" if outcome is None else outcome,
        -1 if elapsed is None else elapsed,
        Instant(-1) if ended is None else ended,
    )


def run_row(record: RunRecord) -> tuple[Any, ...]:
    """Return the row of a run."""
    reported = record.reported
    return (
        record.id,
        *reported.run,
        reported.project,
        record.allocation,
        record.owner,
        reported.partition,
        record.state._value_,
        record.held,
        record.charged,
        record.written_off,
        record.refunded,
        reported.start,
        reported.until,
        *end_row(record.end),
        record.set_by,
        *job_details_row(reported.job_details),
    )


def end_row(end: RunEnd | None) -> tuple[Any, ...]:
    """Return time, final state and duration of an end, as the columns of a run have them."""
    return (None, None, None) if end is None else (end.ended, end.outcome, end.elapsed_seconds)


_NO_DETAILS = (None,) * len(JobDetails.__struct_fields__)


def _job_details_of(cells: Row) -> JobDetails | None:
    """Return the job details, or None if all cells are empty."""
    if tuple(cells) == _NO_DETAILS:
        return None
    name, qos, nodes, cpus, tres, limit, status, used, occupied = cells
    return JobDetails(
        name=name,
        qos=qos,
        nodes=nodes,
        cpus=cpus,
        tres=tres,
        limit_seconds=limit,
        exit_status=status,
        cpu_seconds=used,
        occupied=occupied,
    )


def job_details_row(details: JobDetails | None) -> tuple[Any, ...]:
    """Return the cells of the job details."""
    if details is None:
        return _NO_DETAILS
    return (
        details.name,
        details.qos,
        details.nodes,
        details.cpus,
        details.tres,
        details.limit_seconds,
        details.exit_status,
        details.cpu_seconds,
        details.occupied,
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
        raise _no_entry(row, bad) from bad


def _no_entry(row: Row, error: msgspec.ValidationError) -> Corrupt:
    """Return the error for a corrupt entry, with column names instead of msgspec's positions."""
    column = ValidationFault.of(error).path.strip("[]")
    why = (
        f"its {Entry.__struct_fields__[int(column)]} is {str(row[int(column)])[:40]!r}"
        if column.isdecimal()
        else str(error)
    )
    journal = f"allocation {row[1]}" if row[1] else "the registry"
    return Corrupt(
        f"entry {row[0]} of {journal} cannot be read: {why}", remedy="fairbank audit verify"
    )


# The tuples of entries, runs and allocations are written out: `attrgetter` and `astuple` take three
# times as long, and every hold and charge has such rows.
def entry_row(entry: Entry) -> tuple[Any, ...]:
    """Return the row of a journal entry."""
    return (
        entry.id,
        entry.allocation,
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
    """Return the token of a row."""
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


def _token_row(token: Token) -> tuple[Any, ...]:
    digest, uid, label, scopes, expires, parent, number, created, revoked = astuple(token)
    return (number, digest, uid, label, " ".join(scopes), created, expires, revoked, parent)


def share_record_of(row: Row) -> ShareRecord:
    """Return the record of shares of a row."""
    cluster, day, account, user, partition, at, *figures = row
    try:
        return msgspec.convert((account, user, partition, *figures, cluster, day, at), ShareRecord)
    except msgspec.ValidationError as bad:
        raise Corrupt(
            f"a figure of fair share cannot be read: {bad}",
            remedy="restore from a backup, or delete its day",
        ) from bad


def share_record_row(record: ShareRecord) -> tuple[Any, ...]:
    account, user, partition, *figures, cluster, day, at = astuple(record)
    return (cluster, day, account, user, partition, at, *figures)


class StoredKind(NamedTuple):
    """Table of a kind of rows, both conversions, and the order in which the rows are read.

    `is_by_journal`: the first column of the order is a journal.
    """

    table: Table
    value_of: Callable[[Row], Any]
    row_of: Callable[[Any], tuple[Any, ...]]
    order: tuple[str, ...]
    is_by_journal: bool = False


# A restore fills the tables in this order and empties them in reverse. Nonces are not in a backup;
# they stay.
KINDS: Mapping[type, StoredKind] = {
    Project: StoredKind(schema.project, project_of, astuple, ("id",)),
    Member: StoredKind(schema.member, member_of, _member_row, ("project", "uid")),
    Allocation: StoredKind(
        schema.allocation, allocation_of, allocation_row, ("id",), is_by_journal=True
    ),
    UserRow: StoredKind(
        schema.user_sum, user_of, _user_row, ("allocation", "uid"), is_by_journal=True
    ),
    RunRecord: StoredKind(schema.run, run_of, run_row, ("allocation", "id"), is_by_journal=True),
    Entry: StoredKind(
        schema.journal, entry_of, entry_row, ("allocation", "seq"), is_by_journal=True
    ),
    Token: StoredKind(schema.token, token_of, _token_row, ("id",)),
    ShareRecord: StoredKind(
        schema.share_figure,
        share_record_of,
        share_record_row,
        ("cluster", "day", "account", "login", "partition"),
    ),
}
