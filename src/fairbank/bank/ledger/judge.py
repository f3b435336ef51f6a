"""One wish, one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fairbank.bank import wish as wishes
from fairbank.bank.entry import Kind
from fairbank.bank.ledger import credit, office, runs, terms, tokens, undoing
from fairbank.bank.ledger.outcome import Outcome
from fairbank.bank.ledger.repeating import again, is_the_wish_of
from fairbank.bank.policy import Policy
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.working_set import WorkingSet
from fairbank.core.errors import Malformed

# Each wish has its rule; those of runs also depend on what the centre decided.
_BY_POLICY: Mapping[type, Callable[[WorkingSet, wishes.Asked, Any, Policy], Outcome]] = {
    wishes.Hold: runs.hold,
    wishes.Adjust: runs.adjust,
    wishes.Charge: runs.charge,
    wishes.Release: runs.release,
    wishes.Undo: undoing.undo,
}
_EVERYWHERE: Mapping[type, Callable[[WorkingSet, wishes.Asked, Any], Outcome]] = {
    wishes.Unpriced: runs.unpriced,
    wishes.Lapse: runs.lapse,
    wishes.Refund: credit.refund,
    wishes.Deposit: credit.deposit,
    wishes.Withdraw: credit.withdraw,
    wishes.Transfer: credit.transfer,
    wishes.Open: terms.open_allocation,
    wishes.Amend: terms.amend,
    wishes.Expire: terms.expire,
    wishes.SetCap: terms.set_cap,
    wishes.CreateProject: office.create_project,
    wishes.AmendProject: office.amend_project,
    wishes.RemoveProject: office.remove_project,
    wishes.SetMember: office.set_member,
    wishes.IssueToken: tokens.issue,
    wishes.RevokeToken: tokens.revoke,
    wishes.Note: office.note,
}

# The fields of each wish that are amounts. None of them may be negative; some databases would say so, but not all stores are one.
_AMOUNTS: Mapping[type, tuple[str, ...]] = {
    kind: tuple(
        each.name
        for each in msgspec.structs.fields(kind)
        if each.name in ("amount", "credit_limit", "deposit", "cap")
    )
    for kind in (*_BY_POLICY, *_EVERYWHERE)
}


def judge(work: WorkingSet, asked: wishes.Asked, policy: Policy) -> Outcome:
    """Judge one wish and, if it is granted (or its refusal is to be kept), write it into `work`.

    Asking the same thing twice under one key of one's own is answered twice and counted once. Raises OfficeNeeded when the office's
    book must be loaded first; the batch is then to be judged again from fresh rows. Raises Malformed for a negative amount, which no
    door lets in.
    """
    wish = asked.wish
    for field in _AMOUNTS[type(wish)]:
        if (getattr(wish, field) or 0) < 0:
            raise Malformed(
                f"{type(wish).__name__} of less than nothing",
                field=field,
                remedy="amounts are not negative",
            )
    if wish.key is not None and (known := work.known.get((asked.actor, wish.key))) is not None:
        return again(known) if is_the_wish_of(known, asked) else Refusal(reason=Reason.KEY_TAKEN)
    rule = _BY_POLICY.get(type(wish))
    outcome = (
        rule(work, asked, wish, policy) if rule else _EVERYWHERE[type(wish)](work, asked, wish)
    )
    if (
        wish.key is not None
        and isinstance(outcome, Refusal)
        and outcome.entry is None
        and not _may_count_later(wish, outcome)
    ):
        return _declined(work, asked, outcome)
    return outcome


def _may_count_later(wish: wishes.Request, no: Refusal) -> bool:
    """Usage happened, and what came before its hold may come again after it: their keys stay free until they count."""
    return no.reason is Reason.NO_HOLD or isinstance(
        wish, wishes.Charge | wishes.Release | wishes.Unpriced
    )


def _declined(work: WorkingSet, asked: wishes.Asked, no: Refusal) -> Refusal:
    """Keep a refusal that is no job's, so that its key gets the same answer again."""
    allocation = work.allocations.get(no.allocation) if no.allocation is not None else None
    entry = work.post(
        asked, Kind.DECLINED, no.asked, allocation, details=msgspec.json.encode(no).decode()
    )
    return msgspec.structs.replace(no, entry=entry.id)
