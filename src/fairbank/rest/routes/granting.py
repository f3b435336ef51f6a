"""Allocations changed: credit granted, moved, taken back, capped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from litestar import Response, patch, post, put
from litestar.params import JSONBody
from msgspec import UNSET, structs

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.ledger import Done
from fairbank.bank.wish import Deposit, Open, SetCap, Transfer, Withdraw
from fairbank.cluster.partition import unbilled_warnings
from fairbank.core import ids
from fairbank.core.errors import Malformed, Unknown
from fairbank.core.time import Instant, parse_instant
from fairbank.core.units import SuMinutes
from fairbank.rest.answering import answer, done_of, new
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import Key, Number, UidNumber, checked_key
from fairbank.rest.bodies.answers import ChangedAllocation, Granted, Single
from fairbank.rest.bodies.requests import Movement, NewAllocation, NewCap, NewTerms, NewTransfer
from fairbank.rest.routes.alloc import shown
from fairbank.rest.verbs import AGAIN, again, writes
from fairbank.service.access.permissions import Action, check_allowed
from fairbank.service.allocations import TermChanges


@writes(post, "/alloc", responses=again(Single[ChangedAllocation]))
def open_allocation(
    request: Asking, data: JSONBody[NewAllocation], key: Key = None
) -> Response[Single[ChangedAllocation]]:
    """Grant a project credit on a resource for a period."""
    check_allowed(
        request.asker, Action.OPEN_ALLOCATION
    )  # before the project is looked for, so that nobody can ask which there are
    wish = Open(
        project=_project(request, data),
        resource=ids.kind(data.resource),
        category=ids.kind(data.category, field="category"),
        start=_instant(data.start, "start"),
        end=_instant(data.end, "end"),
        shared=data.shared,
        credit_limit=SuMinutes(data.credit_limit),
        deposit=SuMinutes(data.amount),
        key=checked_key(key),
        comment=ids.reason(data.comment),
    )
    _check_period(wish.start, wish.end)
    done = done_of(request.services.allocations.open(request.asker, wish))
    return Response(
        _changed(request, done, unbilled_warnings(wish.resource, request.services.clusters)),
        status_code=200 if done.again else 201,
    )


def _changed(
    request: Asking, done: Done, warnings: Sequence[str] = ()
) -> Single[ChangedAllocation]:
    now = shown(request, done.allocation or 0)
    row = ChangedAllocation(
        **structs.asdict(now.data), entry=done.entry, warnings=list(warnings) or UNSET
    )
    return Single(schema=now.schema, as_of=now.as_of, data=row)


def _instant(said: str | int, field: str) -> Instant:
    """Raises Malformed."""
    return Instant(said) if isinstance(said, int) else parse_instant(said, field=field)


def _check_period(start: Instant | None, end: Instant | None) -> None:
    if start is not None and end is not None and end <= start:
        raise Malformed(
            "the allocation would not end after it starts",
            field="end",
            remedy="an allocation is valid from start up to, without, end",
        )


def _project(request: Asking, data: JSONBody[NewAllocation]) -> int:
    if (data.project is None) == (data.account is None):
        raise Malformed(
            "name the project once",
            field="project",
            remedy="send either project, its number, or account",
        )
    if data.project is not None:
        return data.project
    found = request.services.directory.by_account(ids.name(data.account or "", field="account"))
    if found is None:
        raise Unknown(
            f"there is no project with the account {data.account}",
            field="account",
            remedy="enter it first: fairbank project create",
        )
    return found.id


@writes(patch, "/alloc/{allocation:int}")
def amend_allocation(
    request: Asking, allocation: Number, data: JSONBody[NewTerms], key: Key = None
) -> Single[ChangedAllocation]:
    """Change the terms of an allocation, or freeze, thaw, end or reopen it."""
    terms = TermChanges(
        start=None if data.start is None else _instant(data.start, "start"),
        end=None if data.end is None else _instant(data.end, "end"),
        shared=data.shared,
        credit_limit=None if data.credit_limit is None else SuMinutes(data.credit_limit),
        event=None if data.event is None else AllocationEvent(data.event),
    )
    if terms == TermChanges():
        raise Malformed(
            "nothing is to change", remedy="send start, end, credit_limit, shared or event"
        )
    _check_period(terms.start, terms.end)
    done = done_of(
        request.services.allocations.amend(
            request.asker, allocation, terms, ids.reason(data.comment), checked_key(key)
        )
    )
    return _changed(request, done)


@writes(put, "/alloc/{allocation:int}/cap/{uid:int}")
def set_cap(
    request: Asking, allocation: Number, uid: UidNumber, data: JSONBody[NewCap], key: Key = None
) -> Single[Granted]:
    """Let a user draw at most so much in all from an allocation."""
    cap = None if data.cap is None else SuMinutes(data.cap)
    comment = None if data.comment is None else ids.comment(data.comment)
    wish = SetCap(allocation=allocation, uid=uid, cap=cap, key=checked_key(key), comment=comment)
    return answer(request.services.allocations.set_cap(request.asker, wish), request.services.clock)


class _Moved(TypedDict):
    """What all movements of credit have in common."""

    amount: SuMinutes
    key: str | None
    comment: str


def _moved(data: Movement | NewTransfer, key: str | None) -> _Moved:
    return {
        "amount": SuMinutes(data.amount),
        "key": checked_key(key),
        "comment": ids.reason(data.comment),
    }


@writes(post, "/alloc/{allocation:int}/deposit", responses=AGAIN)
def deposit(
    request: Asking, allocation: Number, data: JSONBody[Movement], key: Key = None
) -> Response[Single[Granted]]:
    """Put credit into an allocation."""
    wish = Deposit(allocation=allocation, **_moved(data, key))
    return new(request.services.allocations.deposit(request.asker, wish), request.services.clock)


@writes(post, "/alloc/{allocation:int}/withdraw", responses=AGAIN)
def withdraw(
    request: Asking, allocation: Number, data: JSONBody[Movement], key: Key = None
) -> Response[Single[Granted]]:
    """Take unused credit out of an allocation."""
    wish = Withdraw(allocation=allocation, **_moved(data, key))
    return new(request.services.allocations.withdraw(request.asker, wish), request.services.clock)


@writes(post, "/alloc/{allocation:int}/transfer", responses=AGAIN)
def transfer(
    request: Asking, allocation: Number, data: JSONBody[NewTransfer], key: Key = None
) -> Response[Single[Granted]]:
    """Move unused credit to another allocation of the same resource."""
    wish = Transfer(source=allocation, target=data.to, **_moved(data, key))
    return new(request.services.allocations.transfer(request.asker, wish), request.services.clock)


ROUTES = (open_allocation, amend_allocation, set_cap, deposit, withdraw, transfer)
