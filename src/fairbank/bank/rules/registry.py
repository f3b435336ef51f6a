"""Rules of projects, members and notes."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Kind
from fairbank.bank.project import GRANTS, Project, Role, with_all_above
from fairbank.bank.refusals import Detail, Reason, Refusal
from fairbank.bank.requests import (
    AmendProject,
    AuditNote,
    CreateProject,
    RemoveProject,
    SetMember,
    SubmittedRequest,
)
from fairbank.bank.rules.outcome import Done, Outcome, done, post
from fairbank.bank.transaction_data import TransactionData

_encode = msgspec.json.Encoder().encode
_replace = msgspec.structs.replace
_NAMES = ("gname", "gid", "account")


def create_project(
    data: TransactionData, submitted: SubmittedRequest, request: CreateProject
) -> Outcome:
    """Create a project. An identical one is returned; one with the group, gid or account of another
    is refused.
    """
    wanted = Project(
        id=0, gname=request.gname, gid=request.gid, account=request.account, parent=request.parent
    )
    for each in data.projects.values():
        if _replace(each, id=0) == wanted:
            return Done(entry=0, project=each.id, again=True)
    no = _objection(data, wanted, request.parent)
    return (
        no
        if no is not None
        else _entered(data, submitted, _replace(wanted, id=next(data.project_ids)))
    )


def amend_project(
    data: TransactionData, submitted: SubmittedRequest, request: AmendProject
) -> Outcome:
    """Change the names or the parent of a project, or restore it. Without a change nothing is
    written.
    """
    old = data.projects.get(request.project)
    if old is None:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=request.project)
    names = {name: said for name in _NAMES if (said := getattr(request, name)) is not None}
    parent = old.parent if request.parent is None else request.parent or None
    new = _replace(old, parent=parent, removed=old.removed and not request.restore, **names)
    if new == old:
        return Done(entry=0, project=old.id, again=True)
    no = (
        _objection(data, new, request.parent)
        or _orphaned(data, old, new)
        or _untimely(data, old, new)
    )
    return no if no is not None else _entered(data, submitted, new)


def remove_project(
    data: TransactionData, submitted: SubmittedRequest, request: RemoveProject
) -> Outcome:
    """Remove a project that has no child projects, only ended allocations and no holds.

    Its journal and its names stay.
    """
    old = data.projects.get(request.project)
    if old is None:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=request.project)
    if old.removed:
        return Done(entry=0, project=old.id, again=True)
    # First: staff should not end allocations for a removal that is refused anyway.
    if (children := _children(data, old)) is not None:
        return children
    for each in data.allocations.values():
        if each.project == old.id and (
            each.held or each.state_at(submitted.at) is not AllocationState.ENDED
        ):
            over = each.state_at(submitted.at) is AllocationState.ENDED
            return Refusal(
                reason=Reason.PROJECT_IN_USE,
                detail=Detail.ALLOCATION_IN_USE if over else Detail.ALLOCATION_OPEN,
                project=old.id,
                allocation=each.id,
                facts={"state": each.standing(submitted.at).value},
            )
    run = data.held_run_of(old.id)
    if run is not None:
        return Refusal(
            reason=Reason.PROJECT_IN_USE, detail=Detail.RUN_OPEN, project=old.id, run=str(run)
        )
    return _entered(data, submitted, _replace(old, removed=True))


def _objection(data: TransactionData, wanted: Project, parent: int | None) -> Refusal | None:
    """Refuse names of another project, and a parent that is unknown, removed, or below the
    project.
    """
    for each in data.projects.values():
        same = [name for name in _NAMES if getattr(each, name) == getattr(wanted, name)]
        if same and each.id != wanted.id:
            if each.removed:
                detail = Detail.REMOVED
            elif len(same) == len(_NAMES) and each.parent != wanted.parent:
                detail = Detail.OTHER_PARENT
            else:
                detail = Detail.SAME_NAMES
            names = ", ".join(f"{name} {getattr(each, name)}" for name in same)
            return Refusal(
                reason=Reason.EXISTS,
                detail=detail,
                project=each.id,
                facts={"field": same[0], "names": names},
            )
    if parent and parent not in data.projects:
        return Refusal(
            reason=Reason.UNKNOWN_PROJECT,
            detail=Detail.UNKNOWN_PARENT,
            project=parent,
            facts={"field": "parent"},
        )
    if parent and data.projects[parent].removed:
        return Refusal(
            reason=Reason.PROJECT_REMOVED,
            detail=Detail.PARENT_REMOVED,
            project=parent,
            facts={"field": "parent"},
        )
    if parent and wanted.id in {
        each.id for each in with_all_above([data.projects[parent]], data.projects_of)
    }:
        return Refusal(
            reason=Reason.PARENT_CYCLE,
            detail=Detail.OTHER_PARENT,
            project=wanted.id,
            facts={"parent": parent},
        )
    return None


_NAMED = 5
"""Number of child projects that a refusal names."""


def _children(data: TransactionData, parent: Project) -> Refusal | None:
    """Refuse to remove a project with children, which would draw on the credit of a removed
    project.
    """
    children = sorted(
        (each.id, each.account)
        for each in data.projects.values()
        if each.parent == parent.id and not each.removed
    )
    if not children:
        return None
    if len(children) == 1:
        detail = Detail.ONE_CHILD
    else:
        detail = Detail.CHILDREN if len(children) <= _NAMED else Detail.MANY_CHILDREN
    names = ", ".join(f"{number} ({account})" for number, account in children[:_NAMED])
    return Refusal(
        reason=Reason.PROJECT_IN_USE,
        detail=detail,
        project=parent.id,
        facts={"projects": names, "more": len(children) - _NAMED},
    )


def _orphaned(data: TransactionData, old: Project, new: Project) -> Refusal | None:
    """Refuse to restore a project below a removed one."""
    parent = data.projects.get(new.parent) if new.parent is not None else None
    if not old.removed or new.removed or parent is None or not parent.removed:
        return None
    return Refusal(
        reason=Reason.PROJECT_REMOVED,
        project=parent.id,
        detail=Detail.PARENT_STILL_REMOVED,
        facts={"child": new.id},
    )


def _untimely(data: TransactionData, old: Project, new: Project) -> Refusal | None:
    """Refuse another gid or account for a project that was used.

    Reports may still arrive with the old account, and the old gid has members: the next project
    with these would get both.
    """
    changed = [name for name in ("gid", "account") if getattr(old, name) != getattr(new, name)]
    if not changed or not data.is_used(old.id):
        return None
    return Refusal(
        reason=Reason.IDENTITY_LOCKED,
        detail=Detail.SAME_NAMES,
        project=old.id,
        facts={
            "field": changed[0],
            "names": " and ".join(f"{name} {getattr(old, name)}" for name in changed),
        },
    )


def _entered(data: TransactionData, submitted: SubmittedRequest, project: Project) -> Done:
    entry = data.post(submitted, Kind.PROJECT, 0, None, details=details_of(project))
    data.put_project(project)
    return done(entry, None, project=project.id)


def details_of(project: Project) -> str:
    """Return the details of an entry with all fields of a project, by which the audit checks its
    row.
    """
    facts = {
        "project": project.id,
        "gname": project.gname,
        "gid": project.gid,
        "account": project.account,
        "parent": project.parent,
    }
    return _encode(facts | ({"removed": True} if project.removed else {})).decode()


def removed_project(data: TransactionData, allocation: Allocation) -> Refusal | None:
    """Refuse credit and time for an allocation of a removed project. Charges and refunds still
    count.
    """
    project = data.projects.get(allocation.project)
    if project is None or not project.removed:
        return None
    return Refusal(reason=Reason.PROJECT_REMOVED, allocation=allocation.id, project=project.id)


def set_member(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: SetMember,
    *,
    undoes: int | None = None,
) -> Outcome:
    """Give a user a role in a project, or remove it, by the roles at the time of the transaction.

    `undoes` is the entry that this undoes, if any.
    """
    if request.project not in data.projects:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=request.project)
    if data.projects[request.project].removed:
        return Refusal(reason=Reason.PROJECT_REMOVED, project=request.project)
    if request.by is not None and not above(
        data, request.project, request.by, request.uid, request.role
    ):
        return Refusal(reason=Reason.ROLE_ABOVE, project=request.project)
    known = data.members.get((request.project, request.uid))
    if undoes is None and known is None and request.role is None:
        return Refusal(reason=Reason.NOT_A_MEMBER, project=request.project, owner=request.uid)
    if undoes is None and known is not None and known.role is request.role:
        return Done(entry=0, project=request.project, again=True)
    role = request.role.value if request.role else None
    facts = {"project": request.project, "uid": request.uid, "role": role}
    entry = post(data, submitted, Kind.MEMBER, 0, None, facts, undoes=undoes, owner=request.uid)
    data.put_member(request.project, request.uid, request.role)
    return done(entry, None, project=request.project)


def above(data: TransactionData, project: int, by: int, uid: int, new: Role | None = None) -> bool:
    """Return whether a user's role is above that of another user, and above a new role of the
    latter.

    No role is above itself. A user without a role is below all who may grant one.

    Args:
        data: rows of the transaction.
        project: the project.
        by: user who grants or removes.
        uid: user who gets or loses the role.
        new: role that `uid` would get.
    """
    asker, other = data.members.get((project, by)), data.members.get((project, uid))
    grants = GRANTS[asker.role] if asker else frozenset()
    return (
        bool(grants) and (other is None or other.role in grants) and (new is None or new in grants)
    )


def note(data: TransactionData, submitted: SubmittedRequest, request: AuditNote) -> Outcome:
    """Record a note in the registry."""
    return done(
        data.post(
            submitted, Kind.NOTE, 0, None, details=_encode({"note": request.details}).decode()
        ),
        None,
    )
