"""The bank's values as the shapes that travel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.ledger import Done
from fairbank.bank.project import Member, Project
from fairbank.bank.query import Debit, Page
from fairbank.bank.refusal import Alternative, Refusal, remedies, sentence
from fairbank.bank.run import RunRecord, RunState
from fairbank.bank.token import Token
from fairbank.cluster.job import Run
from fairbank.cluster.particulars import UNTOLD, split_status
from fairbank.rest.bodies import answers
from fairbank.values.time import Clock, Instant, iso

T = TypeVar("T")


def single(schema: str, clock: Clock, data: T) -> answers.Single[T]:
    """One thing, with its schema's name and the time of the answer."""
    return answers.Single(schema=f"fairbank.{schema}/1", as_of=iso(clock.now()), data=data)


def listing(schema: str, clock: Clock, data: list[T], next_: str | None = None) -> answers.Listing[T]:
    """Rows, with their schema's name and the time of the answer; `next_` is the cursor of the next page, if there is one."""
    return answers.Listing(schema=f"fairbank.{schema}/1", as_of=iso(clock.now()), data=data, next=next_)


def next_after(page: Page, numbers: Sequence[int]) -> str | None:
    """The cursor of the page after this one; None when this one is not full."""
    return str(numbers[-1]) if numbers and len(numbers) >= page.limit else None


def project_row(project: Project) -> answers.ProjectRow:
    """A project as lists show it."""
    return answers.ProjectRow(**msgspec.structs.asdict(project))


def project_card(project: Project, members: list[Member]) -> answers.ProjectCard:
    """A project with its members."""
    return answers.ProjectCard(**msgspec.structs.asdict(project_row(project)), members=[member_row(each) for each in members])


def member_row(member: Member) -> answers.MemberRow:
    """A member's uid and role."""
    return answers.MemberRow(uid=member.uid, role=member.role.value)


def allocation_row(allocation: Allocation, project: Project, now: Instant) -> answers.AllocationRow:
    """An allocation with its project's names, its state by the clock, and its sums, in SU-minutes."""
    return answers.AllocationRow(
        id=allocation.id,
        project=allocation.project,
        account=project.account,
        gname=project.gname,
        resource=allocation.resource,
        category=allocation.category,
        start=iso(allocation.start),
        end=iso(allocation.end),
        state=allocation.standing(now).value,
        shared=allocation.shared,
        credit_limit=allocation.credit_limit,
        deposited=allocation.deposited,
        charged=allocation.charged,
        held=allocation.held,
        available=allocation.available,
    )


def balance_row(allocation: Allocation, project: Project, now: Instant) -> answers.BalanceRow:
    """An allocation with how much of the deposited is used, in whole percent, rounded down."""
    percent = allocation.charged * 100 // allocation.deposited if allocation.deposited else 0
    return answers.BalanceRow(**msgspec.structs.asdict(allocation_row(allocation, project, now)), used_percent=percent)


def granted(done: Done) -> answers.Granted:
    """What was carried out, amounts in SU-minutes."""
    return answers.Granted(
        entry=done.entry,
        amount=done.amount,
        allocation=done.allocation,
        run=done.run,
        available=done.available,
        written_off=done.written_off,
        again=done.again,
    )


def sums(entry: Entry) -> answers.Sums:
    """The sums of a book as they were after an entry, in SU-minutes."""
    return answers.Sums(
        deposited=entry.deposited,
        charged=entry.charged,
        held=entry.held,
        credit_limit=entry.credit_limit,
        available=_available(entry),
    )


def entry_row(entry: Entry, run: RunRecord | None) -> answers.EntryRow:
    """An entry with the job that it is about; a job that was refused has no record, so the refusal itself tells which."""
    details = msgspec.json.decode(entry.details) if entry.details else None
    cluster, job_id = (run.run.cluster, run.run.job_id) if run else (None, None)
    if details and entry.kind in (Kind.REFUSAL, Kind.DECLINED):
        cluster, job_id = _refused_job(msgspec.convert(details, Refusal))
    return answers.EntryRow(
        id=entry.id,
        seq=entry.seq,
        at=iso(entry.at),
        kind=entry.kind.value,
        amount=entry.amount,
        run=entry.run,
        cluster=cluster,
        job_id=job_id,
        owner_uid=entry.owner,
        actor=entry.actor,
        acting_as=entry.acting_as,
        comment=entry.comment,
        details=details,
        deposited=entry.deposited,
        charged=entry.charged,
        held=entry.held,
        credit_limit=entry.credit_limit,
        available=_available(entry),
    )


def planned_entry(entry: Entry, run: RunRecord | None, changed: dict[str, Any] | None) -> answers.PlannedEntry:
    """An entry that would be written: as it is shown later, but for what only writing gives it."""
    row = entry_row(entry, run)
    fields = {name: getattr(row, name) for name in answers.PlannedEntry.__struct_fields__ if hasattr(row, name)}
    return answers.PlannedEntry(**fields, allocation=entry.book or None, changed=changed)


def changed_terms(changed: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Terms as the row of an allocation has them."""
    return None if changed is None else {name: iso(value) if name in ("start", "end") else value for name, value in changed.items()}


def _available(entry: Entry) -> int:
    return entry.deposited + entry.credit_limit - entry.charged - entry.held


def job_row(record: RunRecord, account: str) -> answers.JobRow:
    """A run, with the account that it ran for."""
    told = record.particulars or UNTOLD
    exit_code, exit_signal = split_status(told.exit_status)
    return answers.JobRow(
        id=record.id,
        cluster=record.run.cluster,
        job_id=record.run.job_id,
        submitted=iso(record.run.submitted),
        restart=record.run.restart,
        project=record.project,
        account=account,
        allocation=record.allocation,
        owner_uid=record.owner,
        partition=record.partition,
        state=record.state.value,
        status=_status(record),
        held=record.held,
        charged=record.charged,
        refunded=record.refunded,
        written_off=record.written_off,
        start=iso(record.start),
        until=iso(record.until),
        ended=None if record.ended is None else iso(record.ended),
        outcome=record.outcome,
        elapsed=record.elapsed_seconds,
        set_by=record.set_by,
        name=told.name,
        qos=told.qos,
        nodes=told.nodes,
        cpus=told.cpus,
        tres=told.tres,
        time_limit=told.limit_seconds,
        exit_code=exit_code,
        exit_signal=exit_signal,
        cpu_seconds=told.cpu_seconds,
    )


def predebit_row(record: RunRecord, comments: str | None) -> answers.PredebitRow:
    """A run as HADM shows what is held for it."""
    return answers.PredebitRow(
        activity_id=record.id,
        allocation_id=record.allocation,
        amount=record.held,
        comments=comments,
        job_id=record.run.job_id,
        status=_status(record),
        owner_uid=record.owner,
    )


def debit_row(debit: Debit) -> answers.DebitRow:
    """A user's charges in one allocation as HADM shows them."""
    return answers.DebitRow(
        activity_id=debit.latest, allocation_id=debit.allocation, amount=debit.charged, comments=None, owner_uid=debit.owner
    )


def _status(record: RunRecord) -> answers.Status:
    return "executing" if record.state is RunState.HELD else "completed"


def failure_row(entry: Entry, no: Refusal, account: str | None, alternatives: tuple[Alternative, ...] = ()) -> answers.FailureRow:
    """A refusal with its sentence, its figures and its remedies; `alternatives` are other projects that could pay."""
    cluster, job_id = _refused_job(no)
    return answers.FailureRow(
        id=entry.id,
        at=iso(entry.at),
        allocation=no.allocation,
        project=no.project or None,
        account=account,
        resource=no.resource,
        owner_uid=no.owner,
        cluster=cluster,
        job_id=job_id,
        run=no.run,
        reason=no.reason.name,
        detail=sentence(no),
        comments=entry.comment if entry.comment is not None else no.reason.value,
        asked=no.asked,
        available=no.available,
        shortfall=no.shortfall,
        remedies=list(remedies(no, alternatives)),
    )


def _refused_job(no: Refusal) -> tuple[str | None, int | None]:
    """Cluster and job id of the run that was refused; both None when no run was."""
    return (None, None) if no.run is None else Run.parse(no.run)[:2]


def token_row(token: Token) -> answers.TokenRow:
    """A token without its secret."""
    return answers.TokenRow(
        id=token.id,
        uid=token.uid,
        label=token.label,
        scopes=list(token.scopes),
        created=iso(token.created),
        expires=iso(token.expires),
        revoked=None if token.revoked is None else iso(token.revoked),
    )


def token_card(token: Token, secret: str) -> answers.TokenCard:
    """A new token with its secret, which is shown this once."""
    return answers.TokenCard(**msgspec.structs.asdict(token_row(token)), secret=secret)
