"""The rules of the office: projects, members, and facts that move nothing."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Kind
from fairbank.bank.ledger.outcome import Done, Outcome, done
from fairbank.bank.ledger.posting import post
from fairbank.bank.project import GRANTS, Project, Role, with_all_above
from fairbank.bank.refusal import IN_USE, UNDER_IT, WAS_REMOVED, Reason, Refusal
from fairbank.bank.wish import AmendProject, Asked, CreateProject, Note, RemoveProject, SetMember
from fairbank.bank.working_set import WorkingSet

_encode = msgspec.json.Encoder().encode
_replace = msgspec.structs.replace
_NAMES = ("gname", "gid", "account")


def create_project(work: WorkingSet, asked: Asked, wish: CreateProject) -> Outcome:
    """Enter a project. The same project again is answered again; one that shares a group, gid or account with another is refused."""
    wanted = Project(id=0, gname=wish.gname, gid=wish.gid, account=wish.account, parent=wish.parent)
    for each in work.projects.values():
        if _replace(each, id=0) == wanted:
            return Done(entry=0, project=each.id, again=True)
    no = _objection(work, wanted, wish.parent)
    return (
        no if no is not None else _entered(work, asked, _replace(wanted, id=next(work.project_ids)))
    )


def amend_project(work: WorkingSet, asked: Asked, wish: AmendProject) -> Outcome:
    """Change a project's names or parent, or bring it back. What is that way already is answered so, and nothing is written."""
    old = work.projects.get(wish.project)
    if old is None:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=wish.project)
    names = {name: said for name in _NAMES if (said := getattr(wish, name)) is not None}
    parent = old.parent if wish.parent is None else wish.parent or None
    new = _replace(old, parent=parent, removed=old.removed and not wish.restore, **names)
    if new == old:
        return Done(entry=0, project=old.id, again=True)
    no = (
        _objection(work, new, wish.parent) or _orphaned(work, old, new) or _untimely(work, old, new)
    )
    return no if no is not None else _entered(work, asked, new)


def remove_project(work: WorkingSet, asked: Asked, wish: RemoveProject) -> Outcome:
    """Let a project be no more, once nothing is under it, its allocations are over and nothing is held for it. Its books stay, and so do
    its names."""
    old = work.projects.get(wish.project)
    if old is None:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=wish.project)
    if old.removed:
        return Done(entry=0, project=old.id, again=True)
    if (
        children := _children(work, old)
    ) is not None:  # first: nobody is to end credit for a removal that cannot be
        return children
    for each in work.allocations.values():
        if each.project == old.id and (
            each.held or each.state_at(asked.at) is not AllocationState.ENDED
        ):
            over = each.state_at(asked.at) is AllocationState.ENDED
            about = f"allocation {each.id} is {IN_USE if over else each.standing(asked.at).value}"
            return Refusal(
                reason=Reason.PROJECT_IN_USE, project=old.id, allocation=each.id, about=about
            )
    run = work.held_run_of(old.id)
    if run is not None:
        return Refusal(
            reason=Reason.PROJECT_IN_USE, project=old.id, run=str(run), about=f"run {run} is open"
        )
    return _entered(work, asked, _replace(old, removed=True))


def _objection(work: WorkingSet, wanted: Project, parent: int | None) -> Refusal | None:
    """Another project has one of the names, or the parent that it is given is none, or is under it."""
    for each in work.projects.values():
        same = [
            f"{name} {getattr(each, name)}"
            for name in _NAMES
            if getattr(each, name) == getattr(wanted, name)
        ]
        if same and each.id != wanted.id:
            differs = (
                ", but another parent"
                if len(same) == len(_NAMES) and each.parent != wanted.parent
                else ""
            )
            removed = f", {WAS_REMOVED}," if each.removed else ""
            return Refusal(
                reason=Reason.EXISTS,
                project=each.id,
                about=f"project {each.id}{removed} has {', '.join(same)}{differs}",
            )
    if parent and parent not in work.projects:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=parent, about=f"parent {parent}")
    if parent and work.projects[parent].removed:
        return Refusal(reason=Reason.PROJECT_REMOVED, project=parent, about=f"parent {parent}")
    if parent and wanted.id in {
        each.id for each in with_all_above([work.projects[parent]], work.projects_of)
    }:
        return Refusal(
            reason=Reason.PARENT_CYCLE,
            project=wanted.id,
            about=f"project {parent} is project {wanted.id} or under it",
        )
    return None


_NAMED = 5
"""So many projects are named one by one."""


def _children(work: WorkingSet, parent: Project) -> Refusal | None:
    """What is under a project would draw on the credit of one that is no more."""
    found = sorted(
        (each.id, each.account)
        for each in work.projects.values()
        if each.parent == parent.id and not each.removed
    )
    if not found:
        return None
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    named = ", ".join(f"{number} ({account})" for number, account in found[:_NAMED])
    about = f"{UNDER_IT} {'is project' if len(found) == 1 else 'are projects'} {named}{more}"
    return Refusal(reason=Reason.PROJECT_IN_USE, project=parent.id, about=about)


def _orphaned(work: WorkingSet, old: Project, new: Project) -> Refusal | None:
    """No project comes back under one that is no more."""
    parent = work.projects.get(new.parent) if new.parent is not None else None
    if not old.removed or new.removed or parent is None or not parent.removed:
        return None
    return Refusal(
        reason=Reason.PROJECT_REMOVED,
        project=parent.id,
        about=f"project {parent.id}, the parent of project {new.id}",
    )


def _untimely(work: WorkingSet, old: Project, new: Project) -> Refusal | None:
    """What was said under the old account may still come late, and the old gid has members: whoever took these would get both."""
    changed = [
        f"{name} {getattr(old, name)}"
        for name in ("gid", "account")
        if getattr(old, name) != getattr(new, name)
    ]
    if not changed or not work.is_used(old.id):
        return None
    return Refusal(
        reason=Reason.IDENTITY_LOCKED,
        project=old.id,
        about=f"project {old.id} stays {' and '.join(changed)}",
    )


def _entered(work: WorkingSet, asked: Asked, project: Project) -> Done:
    entry = work.post(asked, Kind.PROJECT, 0, None, details=details_of(project))
    work.put_project(project)
    return done(entry, None, project=project.id)


def details_of(project: Project) -> str:
    """The project as the journal keeps it, so that its row can be checked against it."""
    facts = {
        "project": project.id,
        "gname": project.gname,
        "gid": project.gid,
        "account": project.account,
        "parent": project.parent,
    }
    return _encode(facts | ({"removed": True} if project.removed else {})).decode()


def no_longer(work: WorkingSet, allocation: Allocation) -> Refusal | None:
    """Why an allocation gets neither credit nor time: its project was removed. What closes its books is booked all the same."""
    project = work.projects.get(allocation.project)
    if project is None or not project.removed:
        return None
    return Refusal(reason=Reason.PROJECT_REMOVED, allocation=allocation.id, project=project.id)


def set_member(
    work: WorkingSet, asked: Asked, wish: SetMember, *, undoes: int | None = None
) -> Outcome:
    """Give a user a role in a project, or take it away; both by the roles as they are now, whatever the asker saw before.

    `undoes` is the entry that is taken back by it, if one is.
    """
    if wish.project not in work.projects:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=wish.project)
    if work.projects[wish.project].removed:
        return Refusal(reason=Reason.PROJECT_REMOVED, project=wish.project)
    if wish.by is not None and not above(work, wish.project, wish.by, wish.uid, wish.role):
        return Refusal(reason=Reason.ROLE_ABOVE, project=wish.project)
    known = work.members.get((wish.project, wish.uid))
    if undoes is None and known is None and wish.role is None:
        return Refusal(
            reason=Reason.NOT_A_MEMBER,
            project=wish.project,
            owner=wish.uid,
            about=f"user {wish.uid} in project {wish.project}",
        )
    if undoes is None and known is not None and known.role is wish.role:
        return Done(entry=0, project=wish.project, again=True)
    role = wish.role.value if wish.role else None
    facts = {"project": wish.project, "uid": wish.uid, "role": role}
    entry = post(work, asked, Kind.MEMBER, 0, None, facts, undoes=undoes, owner=wish.uid)
    work.put_member(wish.project, wish.uid, wish.role)
    return done(entry, None, project=wish.project)


def above(work: WorkingSet, project: int, by: int, uid: int, new: Role | None = None) -> bool:
    """Whether the role of `by` in the project is above that of `uid`, and above the `new` one that it is to become.

    Nobody's is above their own. Who has no role is below all who may give one.
    """
    asker, other = work.members.get((project, by)), work.members.get((project, uid))
    grants = GRANTS[asker.role] if asker else frozenset()
    return (
        bool(grants) and (other is None or other.role in grants) and (new is None or new in grants)
    )


def note(work: WorkingSet, asked: Asked, wish: Note) -> Outcome:
    """Keep a fact in the office's book."""
    return done(
        work.post(asked, Kind.NOTE, 0, None, details=_encode({"note": wish.details}).decode()), None
    )
