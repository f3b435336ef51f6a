"""Refusals of runs: their figures, and where they are kept so that the job's owner finds them."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Kind
from fairbank.bank.ledger.outcome import Done
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.run import RunRecord
from fairbank.bank.wish import Adjust, Asked, Charge, Hold, Release, Unpriced
from fairbank.bank.working_set import WorkingSet

_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder().encode


def refuse_hold(
    work: WorkingSet,
    asked: Asked,
    wish: Hold,
    reason: Reason,
    allocation: Allocation | None,
    *,
    about: str | None = None,
    observed: bool = False,
) -> Refusal:
    """Refuse a hold and keep the refusal, in the office's book when the project has no allocation that it could stand in."""
    no = _replace(
        _about_run(
            wish,
            reason,
            allocation,
            asked=wish.amount,
            about=about or _nobody_has(wish.account),
            observed=observed,
        ),
        available=_left(work, allocation, wish.owner, reason) if allocation else 0,
        project=wish.line[0] if wish.line else wish.removed,
        billing=wish.billing,
        limit_seconds=wish.limit_seconds,
    )
    return _keep(work, asked, no, allocation)


def refuse_adjust(
    work: WorkingSet,
    asked: Asked,
    known: RunRecord,
    allocation: Allocation,
    reason: Reason,
    more: int,
    *,
    observed: bool,
) -> Refusal:
    """Refuse to let a hold grow by `more`, and keep the refusal: it names the project of the run, whoever's allocation pays."""
    no = Refusal(
        reason=reason,
        asked=more,
        available=_left(work, allocation, known.owner, reason),
        allocation=allocation.id,
        project=known.project,
        resource=allocation.resource,
        owner=known.owner,
        run=str(known.run),
        observed=observed,
    )
    return _keep(work, asked, no, allocation)


def refuse_change(work: WorkingSet, asked: Asked, wish: Adjust, *, observed: bool) -> Refusal:
    """Refuse to change the hold of a run that has none, and keep the refusal: who looks at the run later finds its new limit's cost."""
    about = "its time limit was changed while it runs with nothing set aside"
    return _keep(
        work,
        asked,
        _about_run(wish, Reason.NO_HOLD, None, asked=wish.amount, about=about, observed=observed),
        None,
    )


def refuse_late(
    work: WorkingSet,
    asked: Asked,
    wish: Charge | Release,
    reason: Reason,
    allocation: Allocation | None,
    cost: int,
) -> Refusal:
    """Refuse to settle a run that never had a hold, and keep the refusal: the usage is not lost from sight."""
    no = _about_run(wish, reason, allocation, asked=cost, about=_nobody_has(wish.account))
    return _keep(work, asked, no, allocation)


def refuse_unpriced(
    work: WorkingSet, asked: Asked, wish: Unpriced, allocation: Allocation | None
) -> Refusal:
    """Refuse to settle a run whose price nobody can tell, and keep the refusal where its hold is; the hold stays."""
    return _keep(
        work, asked, _about_run(wish, Reason.UNPRICED, allocation, about=wish.why), allocation
    )


def refuse_for_now(
    work: WorkingSet,
    asked: Asked,
    wish: Adjust | Charge | Release,
    reason: Reason,
    allocation: Allocation | None,
    *,
    about: str | None = None,
) -> Refusal:
    """Refuse what is told of a run, and keep the refusal where its hold is. The hold stays, and the key is left free: it may yet count."""
    cost = 0 if isinstance(wish, Release) else wish.amount
    return _keep(
        work,
        without_key(asked),
        _about_run(wish, reason, allocation, asked=cost, about=about),
        allocation,
    )


def refuse_otherwise(
    work: WorkingSet, asked: Asked, known: RunRecord, about: str, cost: int
) -> Refusal:
    """Refuse an end or a change that is not that of its hold, and keep the refusal where the hold is. The hold stays, and the key."""
    allocation = work.allocations[known.allocation]
    no = Refusal(
        reason=Reason.REPORT_MISMATCH,
        asked=cost,
        available=allocation.available,
        allocation=allocation.id,
        project=known.project,
        about=about,
        resource=allocation.resource,
        owner=known.owner,
        run=str(known.run),
    )
    return _keep(work, without_key(asked), no, allocation)


def nobody_pays(line: tuple[int, ...], removed: int | None = None) -> Reason:
    """Why no allocation was found for a run whose account has this line of projects, or is of one that was `removed`."""
    if removed is not None:
        return Reason.PROJECT_REMOVED
    return Reason.NO_ALLOCATION if line else Reason.UNKNOWN_PROJECT


def let_through(no: Refusal) -> Done:
    """The answer of a bank that only observes, where there is nothing to hold on: the entry is the refusal that was kept."""
    return Done(entry=no.entry or 0)


def without_key(asked: Asked) -> Asked:
    """The same question, with its key left free for the answer that counts."""
    return asked if asked.wish.key is None else _replace(asked, wish=_replace(asked.wish, key=None))


def _about_run(
    wish: Hold | Adjust | Charge | Release | Unpriced,
    reason: Reason,
    allocation: Allocation | None,
    *,
    asked: int = 0,
    about: str | None,
    observed: bool = False,
) -> Refusal:
    """A no to what was told of a run, with whose run the wish says it is and what the allocation has left."""
    return Refusal(
        reason=reason,
        asked=asked,
        available=allocation.available if allocation else 0,
        allocation=allocation.id if allocation else None,
        project=wish.line[0] if wish.line else None,
        account=wish.account,
        about=about,
        resource=wish.resource,
        owner=wish.owner,
        run=str(wish.run),
        start=wish.start
        if reason is Reason.NO_ALLOCATION and isinstance(wish, Hold | Charge | Release)
        else None,
        observed=observed,
    )


def _nobody_has(account: str | None) -> str | None:
    return None if account is None else f"none has the account {account!r}"


def _left(work: WorkingSet, allocation: Allocation, owner: int, reason: Reason) -> int:
    """What is left of whatever ran out: the user's cap, or the allocation."""
    if reason is Reason.CAPPED:
        return max(0, work.sums_of(allocation.id, owner).within(allocation.available))
    return allocation.available


def _keep(work: WorkingSet, asked: Asked, no: Refusal, allocation: Allocation | None) -> Refusal:
    entry = work.post(
        asked, Kind.REFUSAL, no.asked, allocation, owner=no.owner, details=_encode(no).decode()
    )
    return _replace(no, entry=entry.id)
