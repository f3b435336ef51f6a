"""Requests to the bank, one class for each. `bank.rules` applies them."""

from __future__ import annotations

import hashlib

import msgspec

from fairbank.bank.allocation import AllocationEvent, AllocationTerms
from fairbank.bank.entry import OF_TERMS, REGISTRY, Entry, Kind, facts_of
from fairbank.bank.project import Role
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.bank.token import TokenGrant
from fairbank.cluster.job import Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes


class BaseRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="do"):
    """Base of all requests. `key` is an idempotency key of the actor.

    The same request under the key gets the same answer; another request under it is a conflict. A
    request that changes nothing, such as a repeated hold without its key, adds no entry and no key.
    """

    key: str | None = None
    comment: str | None = None


# --- runs: reports of clusters, and refunds ---


class RunRequest(BaseRequest, frozen=True, kw_only=True):
    """Report about a run.

    `chain` has the projects whose credit may be used: the run's own, then its parents. It is empty
    if no project has the reported account, or if a hold is for a removed project. `account` is the
    reported one if no project has it. `resource` is None if the settings lack the partition of an
    end. For a run with a hold, owner and project must be those of the hold.
    """

    reported: ReportedRun
    owner: int
    chain: tuple[int, ...] = ()
    account: str | None = None
    resource: str | None = None


class Hold(RunRequest, frozen=True, kw_only=True, tag="hold"):
    """Set the highest possible cost of a run aside when it starts.

    `billing` is the price of one hour in SU (exact, as text); it only explains a refusal.
    """

    resource: str
    amount: SuMinutes
    billing: str | None = None


class Adjust(RunRequest, frozen=True, kw_only=True, tag="adjust"):
    """Change amount and deadline of a hold, after a new time limit. `priced_in`: see Charge."""

    amount: SuMinutes
    priced_in: str | None = None


class Ending(RunRequest, frozen=True, kw_only=True):
    """End of a run. `cluster_known`: the bank's settings have its cluster."""

    end: RunEnd
    cluster_known: bool = True


class Charge(Ending, frozen=True, kw_only=True, tag="charge"):
    """End of a run that cost `amount`, by the weights of partition `priced_in` if that is known."""

    amount: SuMinutes
    priced_in: str | None = None


class Release(Ending, frozen=True, kw_only=True, tag="release"):
    """End of a run that costs nothing: a node failed, or the run never started."""


class Unpriced(Ending, frozen=True, kw_only=True, tag="unpriced"):
    """End of a run without a price: `why`. It is refused, and counts when it is sent again."""

    why: str


class Lapse(BaseRequest, frozen=True, kw_only=True, tag="lapse"):
    """Release a hold whose deadline has passed without a report. Only upkeep sends it."""

    run: Run


class Refund(BaseRequest, frozen=True, kw_only=True, tag="refund"):
    """Refund `amount` of a run's charge; None refunds all that is left of it."""

    run: Run
    amount: SuMinutes | None = None


# --- allocations ---


class Open(BaseRequest, frozen=True, kw_only=True, tag="open"):
    """Create an allocation, with a first deposit if not 0."""

    terms: AllocationTerms
    deposit: SuMinutes = SuMinutes(0)


class Amend(BaseRequest, frozen=True, kw_only=True, tag="amend"):
    """Change terms of an allocation; None leaves a term unchanged. The event END also ends the
    period now.

    `project` and `resource` are those of the allocation, and name the allocations that its period
    must not overlap. `new_resource` and `category` can be set while nothing was charged.
    """

    allocation: int
    project: int
    resource: str
    start: Instant | None = None
    end: Instant | None = None
    shared: bool | None = None
    credit_limit: SuMinutes | None = None
    event: AllocationEvent | None = None
    category: str | None = None
    new_resource: str | None = None


class Expire(BaseRequest, frozen=True, kw_only=True, tag="expire"):
    """End an allocation whose period is over. Only upkeep sends it."""

    allocation: int


class SetCap(BaseRequest, frozen=True, kw_only=True, tag="cap"):
    """Limit the credit that user `uid` may use of an allocation; None removes the cap.

    `by` is the user whose role in `project` decides whom they may cap; None is staff, who may cap
    everyone. The roles at the time of the transaction count.
    """

    allocation: int
    uid: int
    cap: SuMinutes | None
    project: int | None = None
    by: int | None = None


class Deposit(BaseRequest, frozen=True, kw_only=True, tag="deposit"):
    """Deposit credit into an allocation."""

    allocation: int
    amount: SuMinutes


class Withdraw(BaseRequest, frozen=True, kw_only=True, tag="withdraw"):
    """Withdraw unused credit from an allocation; its credit limit cannot be withdrawn."""

    allocation: int
    amount: SuMinutes


class Transfer(BaseRequest, frozen=True, kw_only=True, tag="transfer"):
    """Move credit between two active allocations of one resource."""

    source: int
    target: int
    amount: SuMinutes


# --- rows without an allocation: projects, members, tokens, notes ---


class CreateProject(BaseRequest, frozen=True, kw_only=True, tag="project"):
    """Create a project with its Unix group, gid and Slurm account."""

    gname: str
    gid: int
    account: str
    parent: int | None = None


class AmendProject(BaseRequest, frozen=True, kw_only=True, tag="amend-project"):
    """Change the names of a project or its parent (0: none), or restore it; None leaves a field
    unchanged.

    Its gid and account change only while it never had an allocation or a run.
    """

    project: int
    gname: str | None = None
    gid: int | None = None
    account: str | None = None
    parent: int | None = None
    restore: bool = False


class RemoveProject(BaseRequest, frozen=True, kw_only=True, tag="remove-project"):
    """Remove a project: its allocations have ended, and it has no holds."""

    project: int


class SetMember(BaseRequest, frozen=True, kw_only=True, tag="member"):
    """Give user `uid` a role in a project; None removes the role.

    `by` is the user whose own role decides what they may grant; None is staff, who may grant all.
    The roles at the time of the transaction count.
    """

    project: int
    uid: int
    role: Role | None
    by: int | None = None


class IssueToken(BaseRequest, frozen=True, kw_only=True, tag="issue-token"):
    """Create a token."""

    grant: TokenGrant


class RevokeToken(BaseRequest, frozen=True, kw_only=True, tag="revoke-token"):
    """Revoke a token; `uid` is its required owner, None allows any owner."""

    token: int
    uid: int | None = None


class AuditNote(BaseRequest, frozen=True, kw_only=True, tag="note"):
    """Record a fact that moves no credit: a user acted as another user."""

    details: str


# --- undo ---


class Undo(BaseRequest, frozen=True, kw_only=True, tag="undo"):
    """Undo `entry`, once and whole (docs/decisions/0015).

    The reverse is found in the journal. The other fields name the rows that it changes; they follow
    from the entry, which never changes, and `undo_of` reads them. `allocation` is that of the
    entry, `other` the target of a transfer, `run` the run that the entry names. `project` and
    `resource` are those of the terms, or the project whose roles count; `uid` is the user of a cap
    or a role. `by` is as in SetCap and SetMember.
    """

    entry: int
    allocation: int
    other: int | None = None
    run: Run | None = None
    project: int | None = None
    resource: str | None = None
    uid: int | None = None
    by: int | None = None


def undo_of(
    entry: Entry,
    *,
    run: Run | None = None,
    project: int | None = None,
    by: int | None = None,
    key: str | None = None,
    comment: str | None = None,
) -> Undo:
    """Return the request to undo an entry.

    Args:
        run: run that the entry names.
        project: project of the entry's allocation; only caps need it.
        by: user whose role decides, None for staff.
        key: idempotency key.
    """
    facts = (
        facts_of(entry)
        if entry.kind in (Kind.TRANSFER_OUT, Kind.MEMBER) or entry.kind in OF_TERMS
        else {}
    )
    concerns_user = entry.kind is Kind.CAP or entry.kind is Kind.MEMBER
    return Undo(
        entry=entry.id,
        allocation=entry.allocation,
        other=facts.get("to"),
        run=run,
        project=facts.get(
            "project", project if entry.allocation != REGISTRY and concerns_user else None
        ),
        resource=facts.get("resource"),
        uid=entry.owner if concerns_user else None,
        by=by if concerns_user else None,
        key=key,
        comment=comment,
    )


ReportRequest = Hold | Adjust | Charge | Release | Unpriced
"""Reports about runs: each is a RunRequest."""

OtherRequest = (
    Lapse
    | Refund
    | Deposit
    | Withdraw
    | Transfer
    | Undo
    | Open
    | Amend
    | Expire
    | SetCap
    | CreateProject
    | AmendProject
    | RemoveProject
    | SetMember
    | IssueToken
    | RevokeToken
    | AuditNote
)
Request = ReportRequest | OtherRequest


class SubmittedRequest(msgspec.Struct, frozen=True, gc=False):
    """Request with its user and time. `actor` is the authenticated user, who may act as another.

    `report_digest` is that of the report from which the request was made, None without a report.
    `latest` is the latest time that a report may contain, by the bank's clock; None if `at` is the
    time of the report itself, as in a replay.
    """

    request: Request
    at: Instant
    actor: int
    acting_as: int | None = None
    report_digest: bytes | None = None
    latest: int | None = None


_encode = msgspec.msgpack.Encoder().encode


def digest(submitted: SubmittedRequest) -> bytes:
    """Return sixteen bytes that identify a request, to recognise a repeated one.

    For a request from a report they identify the report: prices may change before it is sent again,
    and with them the request.
    """
    request = submitted.request
    report = submitted.report_digest
    content = request if report is None else (report, request.key, request.comment)
    return hashlib.blake2b(_encode(content), digest_size=16).digest()
