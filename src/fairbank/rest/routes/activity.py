"""What HADM calls activity: entries that move units, credits, open pre-debits, debits by owner (its schemas 3 to 5)."""

from __future__ import annotations

from litestar.di import NamedDependency, Provide
from msgspec.structs import replace

from fairbank.bank.entry import Kind
from fairbank.bank.query import AllocationQuery, EntryQuery, RunQuery
from fairbank.bank.run import RunState
from fairbank.rest.asking import Asking
from fairbank.rest.bodies.answers import ActivityRow, CreditRow, DebitRow, Listing, PredebitRow
from fairbank.rest.params import BY_ACCOUNT, PAGE, RECENT, OneId, OneName, OnePage, OneTime, Projects, by_account, one_time
from fairbank.rest.runs import runs_by_id
from fairbank.rest.verbs import reads
from fairbank.rest.views import listing, next_after, predebit_row
from fairbank.values.time import iso

_CREDITS = {Kind.DEPOSIT: 1, Kind.TRANSFER_IN: 1, Kind.WITHDRAW: -1, Kind.TRANSFER_OUT: -1}
_ACTIVITY = frozenset({*_CREDITS, Kind.HOLD, Kind.ADJUST, Kind.CHARGE, Kind.RELEASE, Kind.LAPSE, Kind.REFUND})


def entries(
    request: Asking,
    allocation: OneId = None,
    project: OneId = None,
    account: OneName = None,
    since: OneTime = None,
    until: OneTime = None,
) -> EntryQuery:
    """The entries that are asked for, of whatever kind, as far as the asker may see them."""
    return EntryQuery(
        sight=request.asker.sight,
        book=allocation,
        projects=_both(by_account(request, account), project),
        since=one_time(since, "since"),
        until=one_time(until, "until"),
    )


Entries = NamedDependency[EntryQuery]
_FILTERS = {"page": RECENT, "chosen": Provide(entries, sync_to_thread=True)}


def _both(projects: frozenset[int] | None, project: int | None) -> frozenset[int] | None:
    if project is None:
        return projects
    return frozenset({project}) if projects is None else projects & {project}


@reads("/activity", dependencies=_FILTERS)
def list_activity(request: Asking, page: OnePage, chosen: Entries) -> Listing[ActivityRow]:
    """Every entry that moves units."""
    found = request.house.allocations.activity(replace(chosen, kinds=_ACTIVITY), page)
    runs = runs_by_id(request, (each.run for each in found))
    rows = [
        ActivityRow(
            activity_id=each.id,
            allocation_id=each.book,
            amount=each.amount,
            comments=each.comment,
            at=iso(each.at),
            kind=each.kind.value,
            job_id=runs[each.run].run.job_id if each.run in runs else None,
            owner_uid=each.owner,
        )
        for each in found
    ]
    return listing("activity", request.house.clock, rows, next_after(page, [each.id for each in found]))


@reads("/credit", dependencies=_FILTERS)
def list_credits(request: Asking, page: OnePage, chosen: Entries) -> Listing[CreditRow]:
    """Deposits and incoming transfers, and with a minus withdrawals and outgoing transfers."""
    found = request.house.allocations.activity(replace(chosen, kinds=frozenset(_CREDITS)), page)
    rows = [
        CreditRow(activity_id=each.id, allocation_id=each.book, amount=_CREDITS[each.kind] * each.amount, comments=each.comment)
        for each in found
    ]
    return listing("credit", request.house.clock, rows, next_after(page, [each.id for each in found]))


@reads("/predebit", dependencies=_FILTERS)
def list_predebits(request: Asking, page: OnePage, chosen: Entries) -> Listing[PredebitRow]:
    """Open holds; since and until are about the start of the run."""
    runs = RunQuery(
        sight=chosen.sight,
        projects=chosen.projects,
        allocation=chosen.book,
        state=RunState.HELD,
        since=chosen.since,
        until=chosen.until,
    )
    found = request.house.runs.find(runs, page)
    return listing("predebit", request.house.clock, [predebit_row(each) for each in found], next_after(page, [each.id for each in found]))


@reads("/debit", dependencies={"page": PAGE, "projects": BY_ACCOUNT})
def list_debits(request: Asking, page: OnePage, projects: Projects, allocation: OneId = None, project: OneId = None) -> Listing[DebitRow]:
    """What each owner was charged in each allocation; a page is one of allocations."""
    query = AllocationQuery(
        sight=request.asker.sight, ids=None if allocation is None else frozenset({allocation}), projects=_both(projects, project)
    )
    found, users = request.house.allocations.drawn(query, page)
    rows = [DebitRow(allocation_id=each.allocation, owner_uid=each.uid, amount=each.sums.charged) for each in users if each.sums.charged]
    return listing("debit", request.house.clock, rows, next_after(page, [each.id for each in found]))


ROUTES = (list_activity, list_credits, list_predebits, list_debits)
