"""The request that takes an entry back."""

from __future__ import annotations

from fairbank.bank.entry import OF_TERMS, REGISTRY, Entry, Kind, facts_of
from fairbank.bank.requests.base import BaseRequest
from fairbank.cluster.job import Run


class Undo(BaseRequest, frozen=True, kw_only=True, tag="undo"):
    """Take back what `entry` did, once and whole (docs/decisions/0015).

    What the reverse is, the ledger finds in the journal. The other fields only tell which rows it touches; they follow from the entry,
    which never changes: `undo_of` reads them there. `book` is the entry's own; `other` the allocation that a transfer went to; `run` the
    one that the entry is about; `project` and `resource` those of its terms, or the project whose roles count; `uid` the user whose cap
    or role it says. `by` as in SetCap and SetMember.
    """

    entry: int
    book: int
    other: int | None = None
    run: Run | None = None
    project: int | None = None
    resource: str | None = None
    uid: int | None = None
    by: int | None = None


def undo_of(
    entry: Entry,
    *,
    run: Run | None = None,
    project: int | None = None,
    by: int | None = None,
    key: str | None = None,
    comment: str | None = None,
) -> Undo:
    """The request to take `entry` back: `run` is the one that it names, `project` that of its book, which only caps need."""
    facts = (
        facts_of(entry)
        if entry.kind in (Kind.TRANSFER_OUT, Kind.MEMBER) or entry.kind in OF_TERMS
        else {}
    )
    says_of_user = entry.kind is Kind.CAP or entry.kind is Kind.MEMBER
    return Undo(
        entry=entry.id,
        book=entry.book,
        other=facts.get("to"),
        run=run,
        project=facts.get("project", project if entry.book != REGISTRY and says_of_user else None),
        resource=facts.get("resource"),
        uid=entry.owner if says_of_user else None,
        by=by if says_of_user else None,
        key=key,
        comment=comment,
    )
