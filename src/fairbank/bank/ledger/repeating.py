"""What was asked before: found by its key, or by its run when it is reported again without one. It gets its first answer again."""

from __future__ import annotations

import msgspec

from fairbank.bank.entry import OFFICE, Entry, Kind, facts_of
from fairbank.bank.ledger.otherwise import told_otherwise
from fairbank.bank.ledger.outcome import Done, Outcome
from fairbank.bank.ledger.refusing import let_through
from fairbank.bank.refusal import Reason, Refusal, Resolution, refusal_of
from fairbank.bank.run import RunRecord, RunState
from fairbank.bank.wish import Asked, Ending, Hold, digest
from fairbank.bank.working_set import WorkingSet
from fairbank.core.units import show_su

_replace = msgspec.structs.replace


def again(entry: Entry) -> Outcome:
    """The first answer, from the entry that kept it."""
    if entry.kind in (Kind.REFUSAL, Kind.DECLINED):
        no = refusal_of(entry)
        return _replace(let_through(no), again=True) if no.observed else no
    facts = facts_of(entry)
    return Done(
        entry=entry.id,
        amount=entry.amount,
        allocation=entry.book if entry.book != OFFICE else None,
        run=entry.run,
        project=facts.get("project") if entry.book == OFFICE else None,
        token=facts.get("token") if entry.kind is Kind.TOKEN else None,
        available=entry.available,
        written_off=facts.get("written_off", 0),
        cpu_counted=facts.get("cpu_counted"),
        again=True,
    )


def is_the_wish_of(entry: Entry, asked: Asked) -> bool:
    """Whether `entry`, found by the key, was made for the very same wish, asked as the same user."""
    return entry.acting_as == asked.acting_as and entry.digest == digest(asked)


def is_reported_by(entry: Entry, asked: Asked) -> bool:
    """Whether `entry` was made for the same report, under whatever key and with whatever comment it came then and now."""
    then = _replace(asked.wish, key=entry.key, comment=entry.comment)
    return entry.digest is not None and is_the_wish_of(
        entry, _replace(asked, wish=then, acting_as=entry.acting_as)
    )


def held_before(work: WorkingSet, asked: Asked, known: RunRecord, wish: Hold) -> Outcome:
    """A second hold: the same start again is answered again, another is a conflict."""
    if known.state is not RunState.HELD:
        return already_resolved(known)
    first = work.entry(known.id)
    if is_reported_by(first, asked) or _is_same_start(work, first, known, wish):
        return again(first)
    about = f"it holds {show_su(known.held)} SU"
    return Refusal(
        reason=Reason.RUN_TAKEN, run=str(wish.run), allocation=known.allocation, about=about
    )


def _is_same_start(work: WorkingSet, first: Entry, known: RunRecord, wish: Hold) -> bool:
    """Whether all that the books keep of the start is as the wish has it, its amount as it was held or as it is held now."""
    kept = (
        known.owner,
        known.start,
        known.partition,
        (known.project,),
        work.allocations[known.allocation].resource,
    )
    return wish.amount in (first.amount, known.held) and kept == (
        wish.owner,
        wish.start,
        wish.partition,
        wish.line[:1],
        wish.resource,
    )


def resolved_before(
    work: WorkingSet, asked: Asked, known: RunRecord, wish: Ending, state: RunState, cost: int
) -> Outcome:
    """A second resolution: the same again is answered again, another is a conflict."""
    last = work.entry(known.set_by)
    if (about := told_otherwise(known, wish)) is not None and not is_reported_by(last, asked):
        return Refusal(
            reason=Reason.TOLD_OTHERWISE,
            run=str(known.run),
            allocation=known.allocation,
            about=about,
        )
    if (known.state is state and known.charged + known.written_off == cost) or is_reported_by(
        last, asked
    ):
        return again(last)
    return already_resolved(known)


def already_resolved(known: RunRecord) -> Refusal:
    """That a run has its end already, and which. It is about no credit, so it has no figures but what the run cost."""
    written_off = f", {show_su(known.written_off)} SU written off" if known.written_off else ""
    end = (
        f"it was charged {show_su(known.charged)} SU{written_off}"
        if known.state is RunState.CHARGED
        else f"it is {known.state.value}"
    )
    return Refusal(
        reason=Reason.RUN_RESOLVED,
        run=str(known.run),
        allocation=known.allocation,
        about=end,
        resolution=Resolution(
            state=known.state, outcome=known.outcome, elapsed_seconds=known.elapsed_seconds
        ),
    )
