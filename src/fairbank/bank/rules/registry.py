"""Rules of projects, members, tokens and notes. A token is created once and revoked once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.project import GRANTS, Project, Role, with_all_above
from fairbank.bank.refusals import Detail, Facts, Reason, Refusal
from fairbank.bank.requests import (
    AmendProject,
    AuditNote,
    CreateProject,
    IssueToken,
    RemoveProject,
    RevokeToken,
    SetMember,
    SubmittedRequest,
)
from fairbank.bank.rules.context import Done, Outcome, RuleContext, done
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.time import Instant

_replace = msgspec.structs.replace
_NAMES = ("gname", "gid", "account")


def create_project(context: RuleContext, request: CreateProject) -> Outcome:
    """Create a project with names of its own. An identical one is returned."""
    wanted = Project(
        id=0, gname=request.gname, gid=request.gid, account=request.account, parent=request.parent
    )
    data = context.data
    for project in data.projects.values():
        if _replace(project, id=0) == wanted:
            return Done(entry=0, project=project.id, again=True)
    refusal = _conflict(data, wanted, request.parent)
    if refusal is not None:
        return refusal
    return _entered(context, _replace(wanted, id=next(data.project_ids)))


def amend_project(context: RuleContext, request: AmendProject) -> Outcome:
    """Change the names or the parent of a project, or restore it; or change nothing."""
    data = context.data
    old = data.projects.get(request.project)
    if old is None:
        return Refusal(Reason.UNKNOWN_PROJECT, project=request.project)
    requested = {name: getattr(request, name) for name in _NAMES}
    names = {name: value for name, value in requested.items() if value is not None}
    parent = old.parent if request.parent is None else request.parent or None
    new = _replace(old, parent=parent, removed=old.removed and not request.restore, **names)
    if new == old:
        return Done(entry=0, project=old.id, again=True)
    refusal = (
        _conflict(data, new, request.parent)
        or _orphaned(data, old, new)
        or _untimely(data, old, new)
    )
    return refusal if refusal is not None else _entered(context, new)


def remove_project(context: RuleContext, request: RemoveProject) -> Outcome:
    """Remove a project that has no child projects, only ended allocations and no holds.

    Its journal and its names stay.
    """
    data = context.data
    old = data.projects.get(request.project)
    if old is None:
        return Refusal(Reason.UNKNOWN_PROJECT, project=request.project)
    if old.removed:
        return Done(entry=0, project=old.id, again=True)
    # First: staff should not end allocations for a removal that is refused anyway.
    if (children := _children(data, old)) is not None:
        return children
    for allocation in data.allocations.values():
        over = allocation.state_at(context.at) in (AllocationState.ENDED, AllocationState.REMOVED)
        if allocation.terms.project == old.id and (allocation.held or not over):
            return Refusal(
                Reason.PROJECT_IN_USE,
                Detail.ALLOCATION_IN_USE if over else Detail.ALLOCATION_OPEN,
                project=old.id,
                allocation=allocation.id,
                facts={"state": allocation.shown_state(context.at).value},
            )
    run = data.held_run_of(old.id)
    if run is not None:
        return Refusal(Reason.PROJECT_IN_USE, Detail.RUN_OPEN, project=old.id, run=str(run))
    return _entered(context, _replace(old, removed=True))


def _conflict(data: TransactionData, wanted: Project, parent: int | None) -> Refusal | None:
    """Refuse names of another project, and a parent that is unknown, removed or below it."""
    for project in data.projects.values():
        same = [name for name in _NAMES if getattr(project, name) == getattr(wanted, name)]
        if same and project.id != wanted.id:
            if project.removed:
                detail = Detail.REMOVED
            elif len(same) == len(_NAMES) and project.parent != wanted.parent:
                detail = Detail.OTHER_PARENT
            else:
                detail = Detail.SAME_NAMES
            names = ", ".join(f"{name} {getattr(project, name)}" for name in same)
            return Refusal(
                Reason.EXISTS, detail, project=project.id, facts={"field": same[0], "names": names}
            )
    if parent and parent not in data.projects:
        return Refusal(
            Reason.UNKNOWN_PROJECT, Detail.UNKNOWN_PARENT, project=parent, facts={"field": "parent"}
        )
    if parent and data.projects[parent].removed:
        return Refusal(
            Reason.PROJECT_REMOVED, Detail.PARENT_REMOVED, project=parent, facts={"field": "parent"}
        )
    if parent and wanted.id in {
        project.id for project in with_all_above([data.projects[parent]], data.projects_of)
    }:
        return Refusal(
            Reason.PARENT_CYCLE, Detail.OTHER_PARENT, project=wanted.id, facts={"parent": parent}
        )
    return None


_NAMED = 5
"""Number of child projects that a refusal names."""


def _children(data: TransactionData, parent: Project) -> Refusal | None:
    """Refuse to remove a project with children, which may draw on its credit."""
    children = sorted(
        (project.id, project.account)
        for project in data.projects.values()
        if project.parent == parent.id and not project.removed
    )
    if not children:
        return None
    if len(children) == 1:
        detail = Detail.ONE_CHILD
    else:
        detail = Detail.CHILDREN if len(children) <= _NAMED else Detail.MANY_CHILDREN
    names = ", ".join(f"{number} ({account})" for number, account in children[:_NAMED])
    return Refusal(
        Reason.PROJECT_IN_USE,
        detail,
        project=parent.id,
        facts={"projects": names, "more": len(children) - _NAMED},
    )


def _orphaned(data: TransactionData, old: Project, new: Project) -> Refusal | None:
    """Refuse to restore a project below a removed one."""
    parent = data.projects.get(new.parent) if new.parent is not None else None
    if not old.removed or new.removed or parent is None or not parent.removed:
        return None
    return Refusal(
        Reason.PROJECT_REMOVED,
        Detail.PARENT_STILL_REMOVED,
        project=parent.id,
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
        Reason.IDENTITY_LOCKED,
        Detail.SAME_NAMES,
        project=old.id,
        facts={
            "field": changed[0],
            "names": " and ".join(f"{name} {getattr(old, name)}" for name in changed),
        },
    )


def _entered(context: RuleContext, project: Project) -> Done:
    """Add an entry with all fields of a project, by which the audit checks its row."""
    facts = {
        "project": project.id,
        "gname": project.gname,
        "gid": project.gid,
        "account": project.account,
        "parent": project.parent,
    }
    if project.removed:
        facts["removed"] = True
    entry = context.post(Kind.PROJECT, 0, None, facts)
    context.data.put_project(project)
    return done(entry, None, project=project.id)


def removed_allocation(allocation: Allocation) -> Refusal | None:
    """Return the refusal for an allocation that was removed. Only an undo brings it back."""
    if allocation.state is not AllocationState.REMOVED:
        return None
    facts = Facts(state=allocation.state.value)
    return Refusal(Reason.WRONG_STATE, Detail.STATE, allocation=allocation.id, facts=facts)


def removed_project(data: TransactionData, allocation: Allocation) -> Refusal | None:
    """Refuse credit and time for a removed project. Charges and refunds still count."""
    project = data.projects.get(allocation.terms.project)
    if project is None or not project.removed:
        return None
    return Refusal(Reason.PROJECT_REMOVED, allocation=allocation.id, project=project.id)


def refuse_project(data: TransactionData, project: int) -> Refusal | None:
    """Refuse a project that is unknown or was removed."""
    if project not in data.projects:
        return Refusal(Reason.UNKNOWN_PROJECT, project=project)
    if data.projects[project].removed:
        return Refusal(Reason.PROJECT_REMOVED, project=project)
    return None


def set_member(context: RuleContext, request: SetMember) -> Outcome:
    """Give a user a role in a project, or remove it, by the roles at this time."""
    data, undoes, project = context.data, context.undoes, request.project
    if (refusal := refuse_project(data, project)) is not None:
        return refusal
    if request.by is not None and not is_above(
        data, project, request.by, request.uid, request.role
    ):
        return Refusal(Reason.ROLE_ABOVE, project=project)
    member = data.members.get((project, request.uid))
    # An undo is always entered, so that the entry that it undoes is marked as undone.
    if undoes is None and member is None and request.role is None:
        return Refusal(Reason.NOT_A_MEMBER, project=project, owner=request.uid)
    if undoes is None and member is not None and member.role is request.role:
        return Done(entry=0, project=project, again=True)
    role = request.role.value if request.role else None
    facts = {"project": project, "uid": request.uid, "role": role}
    entry = context.post(Kind.MEMBER, 0, None, facts, owner=request.uid)
    data.put_member(project, request.uid, request.role)
    return done(entry, None, project=project)


def is_above(
    data: TransactionData, project: int, by: int, uid: int, new: Role | None = None
) -> bool:
    """Return whether a user's role is above that of another user, and above a new role of the
    latter.

    No role is above itself. A user without a role is below all who may grant one.

    Args:
        data: rows of the transaction.
        by: user who grants or removes.
        uid: user who gets or loses the role.
        new: role that `uid` would get.
    """
    asker, other = data.members.get((project, by)), data.members.get((project, uid))
    grants = GRANTS[asker.role] if asker else frozenset()
    return (
        bool(grants) and (other is None or other.role in grants) and (new is None or new in grants)
    )


# --- tokens and notes ---

RESTORED = "revoked before the restore"


def issue_token(context: RuleContext, request: IssueToken) -> Outcome:
    """Create a token. A repeated request gets the same answer; two tokens never have one secret."""
    data, grant = context.data, request.grant
    facts = msgspec.structs.asdict(grant)
    known = next((issued for issued in data.tokens.values() if issued.digest == grant.digest), None)
    if known is None:
        token = Token(id=next(data.token_ids), created=context.at, **facts)
        entry = _enter_token(context, token)
        data.put_token(token)
        return done(entry, None, token=token.id)
    if _replace(known, **facts) != known:
        return Refusal(Reason.TOKEN_TAKEN)
    return Done(entry=0, token=known.id, again=True)


def revoke_token(context: RuleContext, request: RevokeToken) -> Outcome:
    """Revoke a token. The token of another user is treated as one that does not exist."""
    token = context.data.tokens.get(request.token)
    if (
        token is None
        or request.uid not in (None, token.uid)
        or token.revoked is not None
        or token.expires <= context.at
    ):
        return Refusal(Reason.UNKNOWN_TOKEN)
    revoked = _replace(token, revoked=context.at)
    entry = _enter_token(context, revoked)
    context.data.put_token(revoked)
    return done(entry, None, token=token.id)


def stay_revoked(data: TransactionData, tokens: Iterable[Token], at: Instant) -> None:
    """Record that tokens, valid in a backup, were revoked after it. The actor is 0: no user.

    Args:
        data: rows with the head of the registry, to which the entries are added.
        tokens: the tokens, with the times at which they were revoked.
        at: time of the restore.
    """
    for token in tokens:
        request = RevokeToken(token=token.id, comment=RESTORED)
        _enter_token(RuleContext(data, SubmittedRequest(request, at, 0)), token)


def _enter_token(context: RuleContext, token: Token) -> Entry:
    """Add an entry with all fields of a token, by which the audit checks its row."""
    facts = {
        "token": token.id,
        "digest": token.digest.hex(),
        "uid": token.uid,
        "label": token.label,
        "scopes": token.scopes,
        "created": token.created,
        "expires": token.expires,
        "revoked": token.revoked,
        "parent": token.parent,
    }
    return context.post(Kind.TOKEN, 0, None, facts, owner=token.uid)


def note(context: RuleContext, request: AuditNote) -> Outcome:
    """Record a note in the registry."""
    return done(context.post(Kind.NOTE, 0, None, {"note": request.details}), None)
