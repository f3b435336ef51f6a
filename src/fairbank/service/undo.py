"""Use cases: undo an entry, and find what undid an entry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.audit.transfers import TRANSFER_KINDS, transfer_of
from fairbank.bank.entry import REGISTRY, UNDOING, Entry, Kind, facts_of, undone_entry
from fairbank.bank.query import AllocationQuery, EntryQuery, Page, RunQuery
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import Undo, undo_of
from fairbank.bank.rules import Outcome, cannot_undo
from fairbank.cluster.job import Run
from fairbank.core.errors import NotFound
from fairbank.service.access.identity import Action, Identity, check_allowed
from fairbank.service.use_cases import UseCases
from fairbank.store.contract import Reader

# The action that a user must be allowed to undo an entry of a kind: its opposite.
_PERMISSIONS: Mapping[Kind, Action] = {
    Kind.DEPOSIT: Action.WITHDRAW,
    Kind.WITHDRAW: Action.DEPOSIT,
    Kind.TRANSFER_OUT: Action.TRANSFER,
    Kind.REFUND: Action.REFUND,
    Kind.RECHARGE: Action.REFUND,
    Kind.TERMS: Action.AMEND_ALLOCATION,
    Kind.CAP: Action.SET_CAP,
    Kind.MEMBER: Action.SET_MEMBER,
}


_UNDONE = frozenset(UNDOING.values()) | {Kind.TRANSFER_IN, Kind.CHARGE}
_APART = 8
"""Largest distance of the ids of a transfer's two entries. They are consecutive, unless PostgreSQL
draws ids for other batches in between.
"""


class EntryUndo(UseCases):
    """Use cases of undoing. A user who may do the opposite of an entry may undo it."""

    def undo(self, identity: Identity, number: int, comment: str, key: str | None) -> Outcome:
        """Undo an entry by another entry. Raises NotFound, Forbidden.

        Args:
            identity: the user who asks; must be allowed the opposite of the entry.
            number: the entry, by id.
            comment: reason, stored in the journal.
            key: idempotency key; None: a repeated request is a new one.
        """
        request = self._request(identity, number, comment, key)
        return request if isinstance(request, Refusal) else self._apply(identity, request)

    def undone_by(self, entries: Iterable[Entry]) -> Mapping[int, int]:
        """Return `reversals` of the entries of a page."""
        with self._store.reading() as reader:
            return reversals(reader, entries)

    def _request(
        self, identity: Identity, number: int, comment: str, key: str | None
    ) -> Undo | Refusal:
        """Return the request, or the refusal for a kind of entry that cannot be undone."""
        with self._store.reading() as reader:
            entry = _find_entry(reader, identity, number)
            allocations = _allocations_of(reader, entry)
            run = _run_of(reader, entry)
        refusal = cannot_undo(entry, run)
        if refusal is not None:
            return refusal
        owners = {allocation.id: allocation.terms.project for allocation in allocations}
        is_role = entry.kind is Kind.MEMBER
        for project in {facts_of(entry)["project"]} if is_role else set(owners.values()):
            check_allowed(identity, _PERMISSIONS[entry.kind], project)
        home = owners.get(entry.allocation)
        return undo_of(
            entry,
            run=run,
            project=home,
            by=None if identity.superuser else identity.uid,
            key=key,
            comment=f"undo of entry {number}: {comment}",
        )


def _find_entry(reader: Reader, identity: Identity, number: int) -> Entry:
    """Return an entry that the user may see. Raises NotFound.

    A user who may see a project may also see the entries of its roles.
    """
    wanted = EntryQuery(ids=frozenset({number}))
    role = next(
        iter(
            reader.entries(msgspec.structs.replace(wanted, kinds=frozenset({Kind.MEMBER})), Page(1))
        ),
        None,
    )
    if role is not None and (
        identity.visibility.everything or facts_of(role)["project"] in identity.visibility.projects
    ):
        return role
    entries = reader.entries(
        msgspec.structs.replace(wanted, visibility=identity.journal_visibility), Page(1)
    )
    if not entries:
        raise NotFound(
            f"there is no entry {number} that you may see",
            field="entry",
            remedy=(
                "the number is printed by the command that made it, and in the column ENTRY of:"
                " fairbank statement"
            ),
        )
    return entries[0]


def _allocations_of(reader: Reader, entry: Entry) -> list[Allocation]:
    """Return the allocations that the undo touches: the entry's, and the other one of a
    transfer.
    """
    other = facts_of(entry)["to"] if entry.kind is Kind.TRANSFER_OUT else entry.allocation
    return reader.allocations(
        AllocationQuery(ids=frozenset({entry.allocation, other} - {REGISTRY})), Page(2)
    )


def _run_of(reader: Reader, entry: Entry) -> Run | None:
    if entry.run is None:
        return None
    records = reader.runs(RunQuery(ids=frozenset({entry.run})), Page(1))
    return records[0].reported.run if records else None


def reversals(reader: Reader, entries: Iterable[Entry]) -> Mapping[int, int]:
    """Return the entries that undid some of these entries, as ids by the ids of the undone ones.

    The journal has only the other direction. Each entry of a transfer is undone by the entry in its
    own journal, and a charge by the refund that returned the rest of it.
    """
    wanted = [entry for entry in entries if entry.kind in _UNDONE]
    if not wanted:
        return {}
    # The entry that undoes a transfer names the outgoing entry, and is in the journal of that.
    sources = {facts_of(entry)["from"] for entry in wanted if entry.kind is Kind.TRANSFER_IN}
    later = reader.undoing_entries(
        frozenset(entry.allocation for entry in wanted) | sources,
        frozenset(entry.run for entry in wanted if entry.kind is Kind.CHARGE and entry.run),
        min(entry.id for entry in wanted),
    )
    undoing = {of: entry for entry in later if (of := undone_entry(entry)) is not None}
    ids = {entry.id: undoing[entry.id].id for entry in wanted if entry.id in undoing}
    return {**ids, **_last_refunds(wanted, later), **_second_halves(reader, wanted, undoing)}


def _last_refunds(wanted: Iterable[Entry], later: Iterable[Entry]) -> Mapping[int, int]:
    """Return the last refunds of charges of which nothing is left, by the ids of the charges."""
    changes: dict[int | None, list[Entry]] = defaultdict(list)
    for entry in later:
        if entry.kind in (Kind.REFUND, Kind.RECHARGE):
            changes[entry.run].append(entry)
    refunds = {}
    for charge in wanted:
        if charge.kind is not Kind.CHARGE:
            continue
        left, last = charge.amount, None
        for entry in changes[charge.run]:
            is_refund = entry.kind is Kind.REFUND
            left += -entry.amount if is_refund else entry.amount
            last = entry.id if is_refund else last
        if left == 0 and last is not None:
            refunds[charge.id] = last
    return refunds


def _second_halves(
    reader: Reader, wanted: Iterable[Entry], undoing: Mapping[int, Entry]
) -> Mapping[int, int]:
    """Return the outgoing entries of reversed transfers, by the ids of the incoming ones."""
    received = {entry.id: entry.allocation for entry in wanted if entry.kind is Kind.TRANSFER_IN}
    reversed_ = {
        number: entry
        for number, entry in undoing.items()
        if entry.kind is Kind.TRANSFER_IN and facts_of(entry)["from"] in received.values()
    }
    if not reversed_:
        return {}
    ids = frozenset(
        near
        for number, entry in reversed_.items()
        for near in (*range(number, number + _APART + 1), *range(entry.id - _APART, entry.id))
    )
    query = EntryQuery(ids=ids, kinds=TRANSFER_KINDS)
    halves = [(entry, transfer_of(entry)) for entry in reader.entries(query, Page(len(ids)))]
    pairs = {}
    for number, entry in reversed_.items():
        of = next((transfer for half, transfer in halves if half.id == number), None)
        incoming = [
            half.id
            for half, transfer in halves
            if half.kind is Kind.TRANSFER_IN and half.id > number and transfer == of
        ]
        outgoing = [
            half.id
            for half, transfer in halves
            if half.kind is Kind.TRANSFER_OUT
            and half.id < entry.id
            and transfer == transfer_of(entry)
        ]
        # Equal transfers of one second may be near: the two halves follow each other.
        if incoming and outgoing and incoming[0] in received:
            pairs[incoming[0]] = outgoing[-1]
    return pairs
