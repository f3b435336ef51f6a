"""Runs of which something is told that has no hold: it never arrived, or nothing was set aside."""

from __future__ import annotations

from fairbank.bank.allocation import Allocation
from fairbank.bank.efficiency import counted_of_more
from fairbank.bank.ledger.drawing import RESOLUTION, moved, objection
from fairbank.bank.ledger.outcome import Outcome, done
from fairbank.bank.ledger.refusing import (
    let_through,
    nobody_pays,
    refuse_change,
    refuse_late,
    without_key,
)
from fairbank.bank.policy import Policy, Split, is_countable
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.run import RunRecord
from fairbank.bank.run_details import opening_of, resolution_of, written_at_once
from fairbank.bank.wish import Adjust, Asked, Charge, Release
from fairbank.bank.working_set import WorkingSet
from fairbank.cluster.job_details import new_details
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes


def change_without_hold(work: WorkingSet, asked: Asked, wish: Adjust, policy: Policy) -> Outcome:
    """A run that was let run with nothing set aside, or whose hold is still to come: the change is kept, and its key stays free."""
    if wish.owner is None:
        return Refusal(reason=Reason.NO_HOLD, run=str(wish.run), asked=wish.amount)
    no = refuse_change(work, without_key(asked), wish, observed=not policy.enforce)
    return no if policy.enforce else let_through(no)


def resolve_late(
    work: WorkingSet, asked: Asked, wish: Charge | Release, cost: SuMinutes, policy: Policy
) -> Outcome:
    """Resolve a run whose hold never arrived: charged where the hold would have been, if policy says so."""
    if wish.owner is None or wish.start is None or not (wish.line or wish.account):
        return Refusal(reason=Reason.NO_HOLD, run=str(wish.run), asked=cost)
    # Usage happened: said again after its hold came, or after staff mended things, it is to count. So its key stays free.
    keyless = without_key(asked)
    if wish.resource is None:
        return refuse_late(work, keyless, wish, Reason.NO_HOLD, None, cost)
    candidates = work.candidates(wish.line, wish.resource, wish.start)
    if not candidates:
        return refuse_late(work, keyless, wish, nobody_pays(wish.line), None, cost)
    if not policy.late_charges:
        return refuse_late(work, keyless, wish, Reason.NO_HOLD, candidates[0], cost)
    allocation = _payer(work, candidates, wish.owner, cost)
    split = policy.split(cost, allocation.available)
    if not is_countable(allocation.charged + split.charged):
        return refuse_late(work, keyless, wish, Reason.TOO_LARGE, allocation, cost)
    return _settled(work, asked, wish, allocation, split, wish.owner, wish.start)


def _settled(
    work: WorkingSet,
    asked: Asked,
    wish: Charge | Release,
    allocation: Allocation,
    split: Split,
    owner: int,
    start: Instant,
) -> Outcome:
    """The run as it is born: charged or released."""
    number = work.next_entry_id()
    kind, state = RESOLUTION[type(wish)]
    record = RunRecord(
        id=number,
        run=wish.run,
        project=wish.line[0],
        allocation=allocation.id,
        owner=owner,
        partition=wish.partition,
        state=state,
        held=SuMinutes(0),
        start=start,
        until=wish.ended,
        set_by=number,
        charged=SuMinutes(split.charged),
        written_off=SuMinutes(split.written_off),
        ended=wish.ended,
        outcome=wish.outcome,
        elapsed_seconds=wish.elapsed_seconds,
        particulars=new_details(wish.particulars, None),
    )
    work.put_run(record)
    after = moved(work, allocation, owner, charged=split.charged, below=split.overrun > 0)
    counted = counted_of_more(record)
    details = written_at_once(
        opening_of(record), resolution_of(wish, record.written_off, counted, None)
    )
    entry = work.post(
        asked, kind, split.charged, after, run=number, owner=owner, details=details, number=number
    )
    return done(entry, after, written_off=split.written_off, cpu_counted=counted)


def _payer(work: WorkingSet, candidates: list[Allocation], owner: int, cost: int) -> Allocation:
    """Who pays for usage that no hold announced (docs/decisions/0009): the first on the line that would have held it; else one
    with credit for all of it, beyond the user's cap before frozen; else the first that is not frozen; else the first.
    """

    def drawback(each: Allocation) -> tuple[bool, bool, bool]:
        no = objection(work, each, owner, cost)
        return cost > each.available, no is Reason.FROZEN, no is Reason.CAPPED

    return min(candidates, key=drawback)
