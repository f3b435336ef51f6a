"""The rules of runs: hold, adjust, charge, release, lapse. One hold and one resolution for each run."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.efficiency import counted_of_more
from fairbank.bank.entry import Kind
from fairbank.bank.ledger.drawing import RESOLUTION, moved, objection
from fairbank.bank.ledger.early import from_future
from fairbank.bank.ledger.otherwise import told_otherwise
from fairbank.bank.ledger.outcome import Done, Outcome, done
from fairbank.bank.ledger.refusing import (
    let_through,
    nobody_pays,
    refuse_adjust,
    refuse_for_now,
    refuse_hold,
    refuse_otherwise,
    refuse_unpriced,
    without_key,
)
from fairbank.bank.ledger.repeating import (
    again,
    already_resolved,
    held_before,
    is_reported_by,
    resolved_before,
)
from fairbank.bank.ledger.unheld import change_without_hold, resolve_late
from fairbank.bank.policy import Policy, is_countable
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.run import NEXT, RunEvent, RunRecord, RunState
from fairbank.bank.run_details import Adjustment, opening_of, resolution_of, written
from fairbank.bank.wish import Adjust, Asked, Charge, Hold, Lapse, Release, Unpriced
from fairbank.bank.working_set import WorkingSet
from fairbank.cluster.job_details import merge_details, new_details
from fairbank.core.units import SuMinutes

_replace = msgspec.structs.replace

# Looked up once, not for each run: before Python 3.12 the way to a member of an enumeration is as dear as making a value.
_HELD, _HOLD = RunState.HELD, Kind.HOLD
_ADJUSTABLE, _CHARGEABLE, _RELEASABLE = (
    frozenset(state for state, event in NEXT if event is wanted)
    for wanted in (RunEvent.ADJUST, RunEvent.CHARGE, RunEvent.RELEASE)
)


def hold(work: WorkingSet, asked: Asked, wish: Hold, policy: Policy) -> Outcome:
    """Set the highest cost of a run aside on the first allocation of its line that can carry all of it."""
    if (known := work.runs.get(wish.run)) is not None:
        return held_before(work, asked, known, wish)
    if (about := from_future(asked, wish)) is not None:
        observed = not policy.enforce
        early = refuse_hold(
            work, without_key(asked), wish, Reason.FROM_FUTURE, None, about=about, observed=observed
        )
        return let_through(early) if observed else early
    refusals = []
    for each in work.candidates(wish.line, wish.resource, wish.start):
        no = objection(work, each, wish.owner, wish.amount)
        if no is None:
            return _grant(work, asked, wish, each)
        refusals.append((no, each))
    if not refusals:
        homeless = refuse_hold(
            work,
            asked,
            wish,
            nobody_pays(wish.line, wish.removed),
            None,
            observed=not policy.enforce,
        )
        return homeless if policy.enforce else let_through(homeless)
    reason, told = refusals[0]
    if not policy.enforce and is_countable(told.charged + told.held + wish.amount):
        refuse_hold(work, without_key(asked), wish, reason, told, observed=True)
        return _grant(work, asked, wish, work.allocations[told.id], below=True)
    return refuse_hold(work, asked, wish, reason, told)


def _grant(
    work: WorkingSet, asked: Asked, wish: Hold, allocation: Allocation, *, below: bool = False
) -> Done:
    number = work.next_entry_id()
    record = RunRecord(  # most of it by position: so many names take twice as long
        number,
        wish.run,
        wish.line[0],
        allocation.id,
        wish.owner,
        wish.partition,
        _HELD,
        wish.amount,
        wish.start,
        wish.until,
        number,
        particulars=new_details(wish.particulars, None),
    )
    work.put_run(record)
    after = moved(work, allocation, wish.owner, held=wish.amount, below=below)
    details = written(opening_of(record))
    entry = work.post(
        asked,
        _HOLD,
        wish.amount,
        after,
        run=number,
        owner=wish.owner,
        details=details,
        number=number,
    )
    return done(entry, after)


def adjust(work: WorkingSet, asked: Asked, wish: Adjust, policy: Policy) -> Outcome:
    """Make an open hold larger or smaller; a larger one must fit like a new one."""
    known = work.runs.get(wish.run)
    if known is None:
        return change_without_hold(work, asked, wish, policy)
    if known.state not in _ADJUSTABLE:
        return already_resolved(known)
    allocation = work.allocations[known.allocation]
    more, newest = wish.amount - known.held, work.entry(known.set_by)
    if is_reported_by(newest, asked):
        return again(newest)
    if (about := told_otherwise(known, wish)) is not None:
        return refuse_otherwise(work, asked, known, about, wish.amount)
    if more == 0 and wish.until == known.until:
        return again(newest)
    if (about := from_future(asked, wish)) is not None:
        return refuse_for_now(work, asked, wish, Reason.FROM_FUTURE, allocation, about=about)
    no = objection(work, allocation, known.owner, more) if more > 0 else None
    if no is not None:
        observed = not policy.enforce and is_countable(allocation.charged + allocation.held + more)
        refused = refuse_adjust(
            work,
            without_key(asked) if observed else asked,
            known,
            allocation,
            no,
            more,
            observed=observed,
        )
        if not observed:
            return refused
        allocation = work.allocations[allocation.id]
    number, new = work.next_entry_id(), new_details(wish.particulars, known.particulars)
    told = merge_details(known.particulars, new)
    work.put_run(
        _replace(known, held=wish.amount, until=wish.until, set_by=number, particulars=told)
    )
    after = moved(work, allocation, known.owner, held=more, below=no is not None)
    details = written(Adjustment(wish.until, new))
    entry = work.post(
        asked,
        Kind.ADJUST,
        more,
        after,
        run=known.id,
        owner=known.owner,
        details=details,
        number=number,
    )
    return done(entry, after)


def charge(work: WorkingSet, asked: Asked, wish: Charge, policy: Policy) -> Outcome:
    """Charge what a run cost to the allocation that carried its hold, even after its end; the rest of the hold returns."""
    known = work.runs.get(wish.run)
    if known is not None and known.state not in _CHARGEABLE:
        return resolved_before(work, asked, known, wish, RunState.CHARGED, wish.amount)
    return _resolve(work, asked, known, wish, wish.amount, policy)


def release(work: WorkingSet, asked: Asked, wish: Release, policy: Policy) -> Outcome:
    """Close a hold without a charge; the whole of it returns."""
    known = work.runs.get(wish.run)
    if known is not None and known.state not in _RELEASABLE:
        return resolved_before(work, asked, known, wish, RunState.RELEASED, 0)
    return _resolve(work, asked, known, wish, SuMinutes(0), policy)


def unpriced(work: WorkingSet, asked: Asked, wish: Unpriced) -> Outcome:
    """Keep the end of a run that cannot be priced now; said again later it counts, so its key stays free."""
    known = work.runs.get(wish.run)
    if known is not None and known.state not in _CHARGEABLE:
        return resolved_before(work, asked, known, wish, RunState.CHARGED, 0)
    return refuse_unpriced(
        work, without_key(asked), wish, work.allocations[known.allocation] if known else None
    )


def lapse(work: WorkingSet, asked: Asked, wish: Lapse) -> Outcome:
    """Give back a hold whose deadline has passed."""
    known = work.runs.get(wish.run)
    if known is None:
        return Refusal(reason=Reason.NO_HOLD, run=str(wish.run))
    if known.state is not RunState.HELD or asked.at < known.until:
        reason = Reason.NOT_DUE if known.state is RunState.HELD else Reason.RUN_RESOLVED
        return Refusal(reason=reason, run=str(wish.run), allocation=known.allocation)
    number = work.next_entry_id()
    work.put_run(_replace(known, state=RunState.LAPSED, held=SuMinutes(0), set_by=number))
    after = moved(work, work.allocations[known.allocation], known.owner, held=-known.held)
    return done(
        work.post(
            asked, Kind.LAPSE, known.held, after, run=known.id, owner=known.owner, number=number
        ),
        after,
    )


# --- the parts ---


def _resolve(
    work: WorkingSet,
    asked: Asked,
    known: RunRecord | None,
    wish: Charge | Release,
    cost: SuMinutes,
    policy: Policy,
) -> Outcome:
    """Close the hold of `known` at `cost`, where there is one; but not on word from the future."""
    if (about := from_future(asked, wish)) is not None:
        held_in = work.allocations[known.allocation] if known else None
        return refuse_for_now(work, asked, wish, Reason.FROM_FUTURE, held_in, about=about)
    if known is None:
        return resolve_late(work, asked, wish, cost, policy)
    if (about := told_otherwise(known, wish)) is not None:
        return refuse_otherwise(work, asked, known, about, cost)
    allocation = work.allocations[known.allocation]
    split = policy.split(cost, allocation.available + known.held)
    if not is_countable(allocation.charged + split.charged):
        return refuse_for_now(work, asked, wish, Reason.TOO_LARGE, allocation)
    kind, state = RESOLUTION[type(wish)]
    number, new = work.next_entry_id(), new_details(wish.particulars, known.particulars)
    record = _replace(
        known,
        set_by=number,
        state=state,
        held=SuMinutes(0),
        charged=SuMinutes(split.charged),
        written_off=SuMinutes(split.written_off),
        ended=wish.ended,
        outcome=wish.outcome,
        elapsed_seconds=wish.elapsed_seconds,
        particulars=merge_details(known.particulars, new),
    )
    work.put_run(record)
    after = moved(
        work,
        allocation,
        known.owner,
        charged=split.charged,
        held=-known.held,
        below=split.overrun > 0,
    )
    amount = split.charged if isinstance(wish, Charge) else known.held
    counted = counted_of_more(record)
    details = written(resolution_of(wish, record.written_off, counted, new))
    entry = work.post(
        asked, kind, amount, after, run=known.id, owner=known.owner, details=details, number=number
    )
    return done(entry, after, written_off=split.written_off, cpu_counted=counted)
