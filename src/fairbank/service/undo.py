"""Use case: undo an entry."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import REGISTRY, Entry, Kind, facts_of
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


class EntryUndo(UseCases):
    """Use case of undoing. A user who may do the opposite of an entry may undo it."""

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
