"""Dispatch of each request to its rule, and the handling of repeated requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from fairbank.bank import requests
from fairbank.bank.entry import Kind
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.rules import allocation_terms, credit, registry, runs, undo
from fairbank.bank.rules.context import Outcome, RuleContext
from fairbank.bank.rules.repeated import again, is_same_request
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.errors import InvalidInput

_RULES: Mapping[type, Callable[[RuleContext, Any], Outcome]] = {
    requests.Hold: runs.hold,
    requests.Adjust: runs.adjust,
    requests.Charge: runs.charge,
    requests.Release: runs.release,
    requests.Unpriced: runs.record_unpriced,
    requests.Lapse: runs.lapse,
    requests.Refund: credit.refund,
    requests.Deposit: credit.deposit,
    requests.Withdraw: credit.withdraw,
    requests.Transfer: credit.transfer,
    requests.Undo: undo.undo,
    requests.Open: allocation_terms.open_allocation,
    requests.Amend: allocation_terms.amend,
    requests.Expire: allocation_terms.expire,
    requests.SetCap: allocation_terms.set_cap,
    requests.CreateProject: registry.create_project,
    requests.AmendProject: registry.amend_project,
    requests.RemoveProject: registry.remove_project,
    requests.SetMember: registry.set_member,
    requests.IssueToken: registry.issue_token,
    requests.RevokeToken: registry.revoke_token,
    requests.AuditNote: registry.note,
}

# Amounts of each request, by field. None is negative, and the memory store has no constraint.
_AMOUNTS: Mapping[type, dict[str, Callable[[Any], int | None]]] = {
    kind: {
        field.name: attrgetter(field.name)
        for field in msgspec.structs.fields(kind)
        if field.name in ("amount", "deposit", "credit_limit", "cap")
    }
    for kind in _RULES
}
_AMOUNTS[requests.Open]["credit_limit"] = attrgetter("terms.credit_limit")


def apply(data: TransactionData, submitted: requests.SubmittedRequest, policy: Policy) -> Outcome:
    """Apply one request: check idempotency, call its rule, and keep a refusal that has a key.

    The same request under the same key of an actor is answered twice and counted once.

    Args:
        data: rows that the request needs (`LockSet`), changed by it.
        submitted: the request with its user and time.
        policy: rules of the bank.

    Raises:
        RegistryNotLoaded: load the head of the registry, then apply the batch again to fresh rows.
        InvalidInput: an amount is negative; the callers check this before.
    """
    request = submitted.request
    for field, amount_of in _AMOUNTS[type(request)].items():
        if (amount_of(request) or 0) < 0:
            raise InvalidInput(
                f"{field} of {type(request).__name__} is negative",
                field=field,
                remedy="send 0 or more SU-minutes",
            )
    if request.key is not None:
        entry = data.keyed_entries.get((submitted.actor, request.key))
        if entry is not None:
            same = is_same_request(entry, submitted)
            return again(entry) if same else Refusal(Reason.KEY_REUSED)
    outcome = _RULES[type(request)](RuleContext(data, submitted, policy), request)
    if (
        request.key is not None
        and isinstance(outcome, Refusal)
        and outcome.entry is None
        and not _can_count_later(request, outcome)
    ):
        return _declined(data, submitted, outcome)
    return outcome


def _can_count_later(request: requests.Request, refusal: Refusal) -> bool:
    """Return whether the key of a refused request stays free.

    Usage has happened, and a report that came before its hold may be sent again after it. The
    refusals that rules record themselves leave the key free with `RuleContext.without_key`.
    """
    return refusal.reason is Reason.NO_HOLD or isinstance(
        request, requests.Charge | requests.Release | requests.Unpriced
    )


def _declined(
    data: TransactionData, submitted: requests.SubmittedRequest, refusal: Refusal
) -> Refusal:
    """Record a refusal that is not that of a job, so that its key gets the same answer again."""
    allocation = (
        data.allocations.get(refusal.allocation) if refusal.allocation is not None else None
    )
    entry = data.post(
        submitted,
        Kind.DECLINED,
        refusal.requested,
        allocation,
        details=msgspec.json.encode(refusal).decode(),
    )
    return msgspec.structs.replace(refusal, entry=entry.id)
