"""Request to undo an entry."""

from __future__ import annotations

from fairbank.bank.entry import OF_TERMS, REGISTRY, Entry, Kind, facts_of
from fairbank.bank.requests.base import BaseRequest
from fairbank.cluster.job import Run


class Undo(BaseRequest, frozen=True, kw_only=True, tag="undo"):
    """Undo `entry`, once and whole (docs/decisions/0015).

    The reverse is found in the journal. The other fields name the rows that it changes; they follow
    from the entry, which never changes, and `undo_of` reads them. `book` is the allocation of the
    entry, `other` the target of a transfer, `run` the run that the entry names. `project` and
    `resource` are those of the terms, or the project whose roles count; `uid` is the user of a cap
    or a role. `by` is as in SetCap and SetMember.
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
    """Return the request to undo an entry.

    Args:
        entry: the entry.
        run: run that the entry names.
        project: project of the entry's allocation; only caps need it.
        by: user whose role decides, None for staff.
        key: idempotency key.
    """
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
