"""One request, one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fairbank.bank import requests as requests
from fairbank.bank.entry import Kind
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.rules import allocation_terms, credit, registry, runs, tokens, undo
from fairbank.bank.rules.outcome import Outcome
from fairbank.bank.rules.repeated import again, is_same_request
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.errors import InvalidInput

# Each request has its rule; those of runs also depend on what the centre decided.
_BY_POLICY: Mapping[
    type, Callable[[TransactionData, requests.SubmittedRequest, Any, Policy], Outcome]
] = {
    requests.Hold: runs.hold,
    requests.Adjust: runs.adjust,
    requests.Charge: runs.charge,
    requests.Release: runs.release,
    requests.Undo: undo.undo,
}
_EVERYWHERE: Mapping[type, Callable[[TransactionData, requests.SubmittedRequest, Any], Outcome]] = {
    requests.Unpriced: runs.unpriced,
    requests.Lapse: runs.lapse,
    requests.Refund: credit.refund,
    requests.Deposit: credit.deposit,
    requests.Withdraw: credit.withdraw,
    requests.Transfer: credit.transfer,
    requests.Open: allocation_terms.open_allocation,
    requests.Amend: allocation_terms.amend,
    requests.Expire: allocation_terms.expire,
    requests.SetCap: allocation_terms.set_cap,
    requests.CreateProject: registry.create_project,
    requests.AmendProject: registry.amend_project,
    requests.RemoveProject: registry.remove_project,
    requests.SetMember: registry.set_member,
    requests.IssueToken: tokens.issue,
    requests.RevokeToken: tokens.revoke,
    requests.AuditNote: registry.note,
}

# The fields of each request that are amounts. None of them may be negative; some databases would say so, but not all stores are one.
_AMOUNTS: Mapping[type, tuple[str, ...]] = {
    kind: tuple(
        each.name
        for each in msgspec.structs.fields(kind)
        if each.name in ("amount", "credit_limit", "deposit", "cap")
    )
    for kind in (*_BY_POLICY, *_EVERYWHERE)
}


def apply(data: TransactionData, submitted: requests.SubmittedRequest, policy: Policy) -> Outcome:
    """Judge one request and, if it is granted (or its refusal is to be kept), write it into `work`.

    Asking the same thing twice under one key of one's own is answered twice and counted once. Raises RegistryNotLoaded when the registry's
    book must be loaded first; the batch is then to be judged again from fresh rows. Raises InvalidInput for a negative amount, which no
    door lets in.
    """
    request = submitted.request
    for field in _AMOUNTS[type(request)]:
        if (getattr(request, field) or 0) < 0:
            raise InvalidInput(
                f"{type(request).__name__} of less than nothing",
                field=field,
                remedy="amounts are not negative",
            )
    if (
        request.key is not None
        and (known := data.keyed_entries.get((submitted.actor, request.key))) is not None
    ):
        return (
            again(known) if is_same_request(known, submitted) else Refusal(reason=Reason.KEY_REUSED)
        )
    rule = _BY_POLICY.get(type(request))
    outcome = (
        rule(data, submitted, request, policy)
        if rule
        else _EVERYWHERE[type(request)](data, submitted, request)
    )
    if (
        request.key is not None
        and isinstance(outcome, Refusal)
        and outcome.entry is None
        and not _may_count_later(request, outcome)
    ):
        return _declined(data, submitted, outcome)
    return outcome


def _may_count_later(request: requests.Request, no: Refusal) -> bool:
    """Usage happened, and what came before its hold may come again after it: their keys stay free until they count."""
    return no.reason is Reason.NO_HOLD or isinstance(
        request, requests.Charge | requests.Release | requests.Unpriced
    )


def _declined(data: TransactionData, submitted: requests.SubmittedRequest, no: Refusal) -> Refusal:
    """Keep a refusal that is no job's, so that its key gets the same answer again."""
    allocation = data.allocations.get(no.allocation) if no.allocation is not None else None
    entry = data.post(
        submitted, Kind.DECLINED, no.asked, allocation, details=msgspec.json.encode(no).decode()
    )
    return msgspec.structs.replace(no, entry=entry.id)
