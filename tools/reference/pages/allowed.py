"""Outcomes of each request in each state, computed by the ledger on a small bank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from fairbank.bank.allocation import (
    Allocation,
    AllocationEvent,
    AllocationState,
    AllocationTerms,
    ShownState,
)
from fairbank.bank.policy import Policy
from fairbank.bank.project import Project
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import (
    Adjust,
    Amend,
    Charge,
    Deposit,
    Expire,
    Hold,
    Lapse,
    Refund,
    Release,
    Request,
    SubmittedRequest,
    Transfer,
    Withdraw,
)
from fairbank.bank.rules import apply
from fairbank.bank.run import ReportedRun, RunEnd, RunState
from fairbank.bank.transaction_data import NewIds, RegistryHead, RegistryRows, TransactionData
from fairbank.cluster.job import Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes

# Allocation 1 is under test and valid from START to END. Allocation 2 is its partner in transfers.
_START, _END, _LATER = Instant(1_000), Instant(2_000), Instant(9_000)
_DURING = Instant(1_500)
_AT = {
    ShownState.PLANNED: Instant(500),
    ShownState.ACTIVE: _DURING,
    ShownState.FROZEN: _DURING,
    ShownState.ENDED: Instant(2_500),
    ShownState.REMOVED: _DURING,
}
_STORED = {
    ShownState.FROZEN: AllocationState.FROZEN,
    ShownState.ENDED: AllocationState.ENDED,
    ShownState.REMOVED: AllocationState.REMOVED,
}
_RUN, _SOME = Run("darwin", 1, 900), SuMinutes(10)
_TERMS: Mapping[str, Any] = {"allocation": 1, "project": 1, "resource": "cpu"}


def _run_fields(start: Instant, until: Instant = _LATER) -> dict[str, Any]:
    reported = ReportedRun(_RUN, 1, "", start, until)
    return {"reported": reported, "chain": (1,), "resource": "cpu", "owner": 7}


_RUN_FIELDS = _run_fields(_DURING)
_ENDED = RunEnd("COMPLETED", 60, Instant(1_600))

_OF_ALLOCATION: Mapping[str, Request] = {
    "the hold of one that started within its period": Hold(amount=_SOME, **_RUN_FIELDS),
    "the charge of one that started within its period": Charge(
        amount=_SOME, end=_ENDED, **_RUN_FIELDS
    ),
    "deposit": Deposit(allocation=1, amount=_SOME),
    "withdraw": Withdraw(allocation=1, amount=_SOME),
    "transfer from it": Transfer(source=1, target=2, amount=_SOME),
    "transfer to it": Transfer(source=2, target=1, amount=_SOME),
    "a longer period": Amend(end=Instant(3_000), **_TERMS),
    "another limit or sharing": Amend(credit_limit=_SOME, shared=True, **_TERMS),
    **{event.value: Amend(event=event, **_TERMS) for event in AllocationEvent},
    "reopen with a later end": Amend(event=AllocationEvent.REOPEN, end=Instant(3_000), **_TERMS),
    "end, by the sweep": Expire(allocation=1),
}
_OF_RUN: Mapping[str, Request] = {
    "start": Hold(amount=SuMinutes(20), **_RUN_FIELDS),
    "change of its limit": Adjust(amount=SuMinutes(30), **_RUN_FIELDS),
    "end with a cost": Charge(amount=_SOME, end=_ENDED, **_RUN_FIELDS),
    "end without a cost": Release(end=_ENDED, **_RUN_FIELDS),
    "refund": Refund(run=_RUN, amount=SuMinutes(1)),
    "lapse, by the sweep": Lapse(run=_RUN),
}


def allocation_outcomes() -> Iterator[tuple[str, list[str]]]:
    """Yield each request with its outcomes by state of the allocation, in order of `ShownState`."""
    starting = {state: Hold(amount=_SOME, **_run_fields(_AT[state])) for state in ShownState}
    yield (
        "the hold of a run that starts now",
        [_outcome(_work(state), starting[state], _AT[state]) for state in ShownState],
    )
    for name, request in _OF_ALLOCATION.items():
        yield name, [_outcome(_work(shown), request, _AT[shown]) for shown in ShownState]


def run_outcomes() -> Iterator[tuple[str, list[str]]]:
    """Yield each request with its outcomes by state of the run, in the order of `RunState`."""
    for name, request in _OF_RUN.items():
        yield name, [_outcome(_with_run(state), request, Instant(5_000)) for state in RunState]


def _work(shown: ShownState) -> TransactionData:
    state, deposited = _STORED.get(shown, AllocationState.ACTIVE), SuMinutes(100)
    terms = AllocationTerms(1, "cpu", "research", _START, _END)
    later = AllocationTerms(1, "cpu", "research", _LATER, Instant(9_999))
    tested = Allocation(id=1, terms=terms, state=state, deposited=deposited)
    other = Allocation(id=2, terms=later, deposited=deposited)
    return TransactionData(
        allocations=[tested, other],
        registry=RegistryRows(
            head=RegistryHead(), projects=[Project(id=1, gname="chem", gid=1, account="chem")]
        ),
        ids=NewIds(entries=count(1)),
    )


def _with_run(state: RunState) -> TransactionData:
    """Return data in which the run had a hold and then reached this state."""
    work = _work(ShownState.ACTIVE)
    requests: Mapping[RunState, tuple[Request, ...]] = {
        RunState.HELD: (),
        RunState.CHARGED: (Charge(amount=SuMinutes(15), end=_ENDED, **_RUN_FIELDS),),
        RunState.RELEASED: (Release(end=RunEnd("NODE_FAIL", 60, _ENDED.ended), **_RUN_FIELDS),),
        RunState.LAPSED: (Lapse(run=_RUN),),
    }
    hold = Hold(amount=SuMinutes(20), **_run_fields(Instant(1_400), Instant(4_000)))
    for request in (hold, *requests[state]):
        apply(work, SubmittedRequest(request, Instant(5_000), 0), Policy())
    return work


def _outcome(work: TransactionData, request: Request, now: Instant) -> str:
    outcome = apply(work, SubmittedRequest(request, now, 0), Policy())
    if isinstance(outcome, Refusal):
        return outcome.reason.name
    return "as before" if outcome.again else "yes"
