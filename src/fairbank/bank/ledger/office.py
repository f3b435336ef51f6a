"""The rules of the office: projects, members, and facts that move nothing."""

from __future__ import annotations

import msgspec

from fairbank.bank.entry import Kind
from fairbank.bank.ledger.outcome import Done, Outcome, done
from fairbank.bank.ledger.posting import post
from fairbank.bank.project import GRANTS, Project
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.wish import Asked, CreateProject, Note, SetMember
from fairbank.bank.working_set import WorkingSet

_encode = msgspec.json.Encoder().encode


def create_project(work: WorkingSet, asked: Asked, wish: CreateProject) -> Outcome:
    """Enter a project. The same project again is answered again; one that shares a group, gid or account with another is refused."""
    for each in work.projects.values():
        if (each.gname, each.gid, each.account, each.parent) == (wish.gname, wish.gid, wish.account, wish.parent):
            return Done(entry=0, project=each.id, again=True)
        same = [f"{name} {getattr(each, name)}" for name in ("gname", "gid", "account") if getattr(each, name) == getattr(wish, name)]
        if same:
            differs = ", but another parent" if len(same) == 3 else ""
            return Refusal(reason=Reason.EXISTS, project=each.id, about=f"project {each.id} has {', '.join(same)}{differs}")
    if wish.parent is not None and wish.parent not in work.projects:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=wish.parent)
    project = Project(id=next(work.project_ids), gname=wish.gname, gid=wish.gid, account=wish.account, parent=wish.parent)
    entry = work.post(asked, Kind.PROJECT, 0, None, details=details_of(project))
    work.put_project(project)
    return done(entry, None, project=project.id)


def details_of(project: Project) -> str:
    """The project as the journal keeps it, so that its row can be checked against it."""
    facts = {"project": project.id, "gname": project.gname, "gid": project.gid, "account": project.account, "parent": project.parent}
    return _encode(facts).decode()


def set_member(work: WorkingSet, asked: Asked, wish: SetMember, *, undoes: int | None = None) -> Outcome:
    """Give a user a role in a project, or take it away; both by the roles as they are now, whatever the asker saw before.

    `undoes` is the entry that is taken back by it, if one is.
    """
    if wish.project not in work.projects:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=wish.project)
    if wish.by is not None and not _may_grant(work, wish, wish.by):
        return Refusal(reason=Reason.ROLE_ABOVE, project=wish.project)
    role = wish.role.value if wish.role else None
    facts = {"project": wish.project, "uid": wish.uid, "role": role}
    entry = post(work, asked, Kind.MEMBER, 0, None, facts, undoes=undoes, owner=wish.uid)
    work.put_member(wish.project, wish.uid, wish.role)
    return done(entry, None, project=wish.project)


def _may_grant(work: WorkingSet, wish: SetMember, by: int) -> bool:
    asker, old = work.members.get((wish.project, by)), work.members.get((wish.project, wish.uid))
    grants = GRANTS[asker.role] if asker else frozenset()
    return bool(grants) and (old is None or old.role in grants) and (wish.role is None or wish.role in grants)


def above(work: WorkingSet, project: int, by: int, uid: int) -> bool:
    """Whether the role of `by` in the project is above that of `uid`, so nobody's is above their own. Who has no role is below all."""
    asker, other = work.members.get((project, by)), work.members.get((project, uid))
    grants = GRANTS[asker.role] if asker else frozenset()
    return by != uid and bool(grants) and (other is None or other.role in grants)


def note(work: WorkingSet, asked: Asked, wish: Note) -> Outcome:
    """Keep a fact in the office's book."""
    return done(work.post(asked, Kind.NOTE, 0, None, details=_encode({"note": wish.details}).decode()), None)
