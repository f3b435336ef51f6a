"""What each wish needs, and a batch of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.entry import OFFICE, TERMS
from fairbank.bank.needs.rows import Needs
from fairbank.bank.reach import ALL_OF_IT, Reach, want
from fairbank.bank.wish import (
    Adjust,
    Amend,
    AmendProject,
    Asked,
    Charge,
    CreateProject,
    Deposit,
    Expire,
    Hold,
    IssueToken,
    Lapse,
    Note,
    Open,
    Refund,
    Release,
    RemoveProject,
    RevokeToken,
    SetCap,
    SetMember,
    Transfer,
    Undo,
    Unpriced,
    Withdraw,
)


def needs_of(batch: Sequence[Asked], *, office: bool = False, foretold: bool = False) -> Needs:
    """The needs of all wishes together; `office` when a first try showed that the office's book is wanted, `foretold` when nothing will be
    written."""
    needs = Needs(office=office, foretold=foretold)
    draws: dict[
        _Draw, None
    ] = {}  # in their order; of a user's runs that start in one second, in a batch the most by far, it is one
    for asked in batch:
        wish = asked.wish
        needs.entries += 2
        if wish.key is not None:
            needs.keys.add((asked.actor, wish.key))
        draw = _OF[type(wish)](needs, wish)
        if draw is not None:
            draws[draw] = None
    for draw in draws:
        _drawn_on(needs, draw)
    return needs


_Draw = tuple[bool, tuple[int, ...], str, int, int]
"""What a run may draw on: whether it matters only if its hold never arrived, its line, resource, owner and start. Most wishes have none."""


def _drawn_on(needs: Needs, draw: _Draw) -> None:
    """What a run of this line could draw on: allocations of its own, and those that its parents share."""
    late, line, resource, owner, start = draw
    for place, project in enumerate(line):
        want(
            needs.late if late else needs.funds,
            project,
            resource,
            Reach(start, start, own=place == 0),
        )
        needs.owners.setdefault((project, resource), set()).add(owner)


# --- what each wish needs ---


def _hold(needs: Needs, wish: Hold) -> _Draw:
    needs.starting.add(wish.run)
    needs.runs.add(wish.run)
    if not wish.line:
        needs.office = True
    return False, wish.line, wish.resource, wish.owner, wish.start


def _resolution(needs: Needs, wish: Charge | Release) -> _Draw | None:
    needs.runs.add(wish.run)
    _of_nobody(needs, wish)
    if wish.resource is None or wish.owner is None or wish.start is None:
        return None
    needs.ending.add(wish.run)
    return True, wish.line, wish.resource, wish.owner, wish.start


def _adjust(needs: Needs, wish: Adjust) -> None:
    needs.changing.add(wish.run)
    needs.runs.add(wish.run)
    _of_nobody(needs, wish)


def _unpriced(needs: Needs, wish: Unpriced) -> None:
    needs.runs.add(wish.run)
    _of_nobody(needs, wish)


def _of_nobody(needs: Needs, wish: Adjust | Charge | Release | Unpriced) -> None:
    """What is refused because no project has the account is kept in the office's book."""
    if wish.account is not None:
        needs.office = True


def _run_alone(needs: Needs, wish: Lapse | Refund) -> None:
    needs.runs.add(wish.run)


def _deposit(needs: Needs, wish: Deposit) -> None:
    needs.allocations.add(wish.allocation)
    needs.enriched.add(wish.allocation)


def _withdraw(needs: Needs, wish: Withdraw) -> None:
    needs.allocations.add(wish.allocation)


def _transfer(needs: Needs, wish: Transfer) -> None:
    needs.allocations |= {wish.source, wish.target}
    needs.enriched.add(wish.target)


def _undo(needs: Needs, wish: Undo) -> None:
    """The entry with what undid it before; then what its reverse needs, and where that only says something, all that was said of it."""
    needs.undone.add(wish.entry)
    needs.allocations.update(each for each in (wish.book, wish.other) if each)
    if wish.run is None and wish.book != OFFICE:
        needs.enriched.add(wish.book)  # its reverse may be credit
    if wish.run is not None:
        needs.runs.add(wish.run)
    if wish.book == OFFICE:
        needs.office = True
        needs.projects.update(() if wish.project is None else (wish.project,))
    if wish.uid is not None:
        needs.reworded.add((wish.book, wish.uid))
        _of_user(needs, wish.book, wish.uid, wish.project, wish.by)
    elif wish.project is not None and wish.resource is not None:
        needs.reworded.add((wish.book, TERMS))
        needs.projects.add(wish.project)
        want(needs.funds, wish.project, wish.resource, ALL_OF_IT)


def _open(needs: Needs, wish: Open) -> None:
    needs.projects.add(wish.project)
    needs.office = True  # no project is removed while it gets an allocation
    want(needs.funds, wish.project, wish.resource, ALL_OF_IT)
    needs.opens += 1


def _amend(needs: Needs, wish: Amend) -> None:
    needs.allocations.add(wish.allocation)
    want(needs.funds, wish.project, wish.resource, ALL_OF_IT)
    if (
        wish.end is not None
        or wish.credit_limit is not None
        or wish.event is AllocationEvent.REOPEN
    ):
        needs.projects.add(wish.project)  # one that was removed gets no more time, nor credit


def _expire(needs: Needs, wish: Expire) -> None:
    needs.allocations.add(wish.allocation)


def _set_cap(needs: Needs, wish: SetCap) -> None:
    needs.allocations.add(wish.allocation)
    _of_user(needs, wish.allocation, wish.uid, wish.project, wish.by)


def _of_user(needs: Needs, book: int, uid: int, project: int | None, by: int | None) -> None:
    if book != OFFICE:
        needs.caps.add((book, uid))
    if project is not None:
        _roles(needs, project, uid, by)
    if by is not None:
        needs.office = True  # nobody's role changes while it is looked at


def _create_project(needs: Needs, wish: CreateProject) -> None:
    needs.creating.append(wish)
    needs.creates += 1
    needs.office = True
    if wish.parent is not None:
        needs.projects.add(wish.parent)


def _amend_project(needs: Needs, wish: AmendProject) -> None:
    needs.creating.append(wish)
    needs.projects |= {wish.project, wish.parent or wish.project}
    needs.lines = (
        needs.lines or bool(wish.parent) or wish.restore
    )  # nothing comes back under what was removed
    if wish.gid is not None or wish.account is not None:
        needs.renaming.add(wish.project)
    needs.office = True


def _remove_project(needs: Needs, wish: RemoveProject) -> None:
    needs.projects.add(wish.project)
    needs.closing.add(wish.project)
    needs.office = True


def _set_member(needs: Needs, wish: SetMember) -> None:
    needs.projects.add(wish.project)
    _roles(needs, wish.project, wish.uid, wish.by)
    needs.office = True


def _roles(needs: Needs, project: int, *uids: int | None) -> None:
    needs.members.update((project, uid) for uid in uids if uid is not None)


def _issue(needs: Needs, wish: IssueToken) -> None:
    needs.digests.add(wish.digest)
    needs.issues += 1
    needs.office = True


def _revoke(needs: Needs, wish: RevokeToken) -> None:
    needs.tokens.add(wish.token)
    needs.office = True


def _note(needs: Needs, wish: Note) -> None:
    needs.office = True


_OF: Mapping[type, Callable[[Needs, Any], _Draw | None]] = {
    Hold: _hold,
    Charge: _resolution,
    Release: _resolution,
    Adjust: _adjust,
    Lapse: _run_alone,
    Refund: _run_alone,
    Unpriced: _unpriced,
    Deposit: _deposit,
    Withdraw: _withdraw,
    Transfer: _transfer,
    Undo: _undo,
    Open: _open,
    Amend: _amend,
    Expire: _expire,
    SetCap: _set_cap,
    CreateProject: _create_project,
    AmendProject: _amend_project,
    RemoveProject: _remove_project,
    SetMember: _set_member,
    IssueToken: _issue,
    RevokeToken: _revoke,
    Note: _note,
}
