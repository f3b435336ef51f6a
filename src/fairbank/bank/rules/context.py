"""Request being applied, its outcome, and the sums of an allocation that it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.run import RunRecord, UserSums
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes

_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder().encode
_NOTHING: Mapping[str, object] = {}

# Looked up once: before Python 3.12 the lookup of a member costs as much as creating a value.
_FROZEN = AllocationState.FROZEN


class Done(msgspec.Struct, frozen=True, gc=False):
    """Granted request: its entry and the kind of it, and the sums of the allocation after it.

    `written_off` is the part of a cost that is not charged, `cpu_counted` the processor seconds
    that count if the report has too many. `again` marks the answer to a repeated request.
    """

    entry: int
    amount: int = 0
    allocation: int | None = None
    run: int | None = None
    project: int | None = None
    token: int | None = None
    remaining: int = 0
    written_off: int = 0
    cpu_counted: int | None = None
    kind: Kind | None = None
    again: bool = False


Outcome = Done | Refusal


class RuleContext(NamedTuple):
    """Request being applied: the rows of its transaction, its user and time, and the policy.

    `undoes` is the entry that its entry undoes, if any. `submitted.request` may then be the undo,
    while the rule applies the reverse of an entry.
    """

    data: TransactionData
    submitted: SubmittedRequest
    policy: Policy = Policy()
    undoes: int | None = None

    @property
    def at(self) -> Instant:
        """Time of the request."""
        return self.submitted.at

    def without_key(self) -> RuleContext:
        """Return a context without the key, which stays free for the answer that counts."""
        request = self.submitted.request
        if request.key is None:
            return self
        return self._replace(
            submitted=_replace(self.submitted, request=_replace(request, key=None))
        )

    def post(
        self,
        kind: Kind,
        amount: int,
        allocation: Allocation | None,
        facts: Mapping[str, object] = _NOTHING,
        *,
        run: int | None = None,
        owner: int | None = None,
    ) -> Entry:
        """Add an entry with its details. The reverse of an entry is marked as such.

        Args:
            amount: units that the entry moves, in SU-minutes.
            allocation: allocation with its new sums; None adds the entry to the registry.
            facts: details of the entry, stored as a JSON object; none if empty.
            run: row id of the run.
            owner: owner of the run, or the user concerned.
        """
        undoes = self.undoes
        # Stores find the id at the end of the details.
        stored = facts if undoes is None else {**facts, "undoes": undoes}
        details = _encode(stored).decode() if stored else None
        entry = self.data.post(
            self.submitted, kind, amount, allocation, run=run, owner=owner, details=details
        )
        return entry if undoes is None else self.data.undo(undoes, entry)


def done(
    entry: Entry,
    allocation: Allocation | None,
    *,
    written_off: int = 0,
    cpu_counted: int | None = None,
    project: int | None = None,
    token: int | None = None,
) -> Done:
    """Return the answer that an entry gives.

    Args:
        entry: the new entry, or the first of a request that has two.
        allocation: allocation after the entry; None for an entry of the registry.
        written_off: part of the cost that is not charged, in SU-minutes.
        cpu_counted: processor seconds that count if the report has too many, else None.
        project: id of the project that the request concerns, if it concerns no allocation.
        token: id of the token that the request issued or revoked.
    """
    # By position: keyword arguments take three times as long.
    return Done(
        entry.id,
        entry.amount,
        allocation.id if allocation else None,
        entry.run,
        project,
        token,
        allocation.remaining if allocation else 0,
        written_off,
        cpu_counted,
        entry.kind,
    )


def obstacle(allocation: Allocation, sums: UserSums, more: int) -> Reason | None:
    """Return the reason why an allocation cannot pay more for a user; None if it can.

    A freeze counts until it is thawed, even after the period. If neither the credit nor the cap is
    enough, the one of which less is left is named.

    Args:
        allocation: allocation that is to pay.
        sums: charges, holds and cap of the user in it.
        more: amount beyond its charges and holds up to now, in SU-minutes.
    """
    if allocation.state is _FROZEN:
        return Reason.FROZEN
    if sums.left is not None and sums.left < allocation.remaining and more > sums.left:
        return Reason.CAPPED
    return Reason.INSUFFICIENT_CREDIT if more > allocation.remaining else None


def put_run(
    data: TransactionData,
    record: RunRecord,
    *,
    charged: int = 0,
    held: int = 0,
    below: bool = False,
) -> Allocation:
    """Put the new row of a run, change the sums of its owner, and return its allocation.

    Args:
        data: rows of the transaction.
        record: row of the run after the request.
        charged: change of the charges, in SU-minutes.
        held: change of the holds, in SU-minutes.
        below: policy lets `remaining` go below zero.
    """
    data.put_run(record)
    allocation, owner = data.allocations[record.allocation], record.owner
    sums = data.sums_of(allocation.id, owner)
    data.put_user(
        allocation.id,
        owner,
        UserSums(SuMinutes(sums.charged + charged), SuMinutes(sums.held + held), sums.cap),
    )
    after = _replace(allocation, charged=allocation.charged + charged, held=allocation.held + held)
    if not below:
        return after
    return _replace(after, overrun=SuMinutes(max(after.overrun, -after.remaining)))
