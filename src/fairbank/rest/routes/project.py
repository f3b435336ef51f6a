"""Projects and their members."""

from __future__ import annotations

from litestar import Response, delete, post, put
from litestar.params import JSONBody
from msgspec import structs

from fairbank.bank.project import Role
from fairbank.bank.query import PAGE_MAX, Page, ProjectQuery
from fairbank.bank.wish import CreateProject
from fairbank.rest.answering import answer, done_of
from fairbank.rest.asking import Asking
from fairbank.rest.bodies.answers import EnteredProject, Granted, Listing, MemberRow, ProjectCard, ProjectRow, Single
from fairbank.rest.bodies.requests import NewProject, NewRole
from fairbank.rest.params import PAGE, Key, Number, OneName, OnePage, OneUid, UidNumber, checked_key
from fairbank.rest.verbs import again, reads, writes
from fairbank.rest.views import listing, member_row, next_after, project_card, project_row, single
from fairbank.values import ids


@reads("/project", dependencies={"page": PAGE})
def list_projects(
    request: Asking, page: OnePage, gid: OneUid = None, gname: OneName = None, account: OneName = None
) -> Listing[ProjectRow]:
    """The projects that the asker may see."""
    found = request.house.projects.find(ProjectQuery(sight=request.asker.sight, gid=gid, gname=gname, account=account), page)
    rows = [project_row(each) for each in found]
    return listing("project", request.house.clock, rows, next_after(page, [each.id for each in found]))


@reads("/project/{project:int}")
def show_project(request: Asking, project: Number) -> Single[ProjectCard]:
    """One project with its members, the first 1,000 of them."""
    found = request.house.projects.get(request.asker, project)
    members = request.house.projects.members(request.asker, project, Page(PAGE_MAX))
    return single("project", request.house.clock, project_card(found, members))


@writes(post, "/project", responses=again(Single[EnteredProject]))
def enter_project(request: Asking, data: JSONBody[NewProject], key: Key = None) -> Response[Single[EnteredProject]]:
    """Enter a Unix group that is to have credit."""
    wish = CreateProject(
        gname=ids.name(data.gname, field="gname"),
        gid=data.gid,
        account=ids.name(data.account if data.account is not None else data.gname, field="account"),
        parent=data.parent,
        key=checked_key(key),
    )
    done = done_of(request.house.projects.create(request.asker, wish))
    row = project_row(request.house.directory.by_id(done.project or 0))
    entered = EnteredProject(**structs.asdict(row), entry=done.entry or None)
    return Response(single("project", request.house.clock, entered), status_code=200 if done.again else 201)


@reads("/project/{project:int}/member", dependencies={"page": PAGE})
def list_members(request: Asking, project: Number, page: OnePage) -> Listing[MemberRow]:
    """The members of a project, by uid."""
    found = request.house.projects.members(request.asker, project, page)
    return listing("member", request.house.clock, [member_row(each) for each in found], next_after(page, [each.uid for each in found]))


@writes(put, "/project/{project:int}/member/{uid:int}")
def set_member(request: Asking, project: Number, uid: UidNumber, data: JSONBody[NewRole], key: Key = None) -> Single[Granted]:
    """Give a user a role in a project."""
    comment = None if data.comment is None else ids.comment(data.comment)
    outcome = request.house.projects.set_member(request.asker, project, uid, Role(data.role), comment=comment, key=checked_key(key))
    return answer(outcome, request.house.clock)


@writes(delete, "/project/{project:int}/member/{uid:int}", status_code=200)
def remove_member(request: Asking, project: Number, uid: UidNumber, key: Key = None) -> Single[Granted]:
    """Take a user out of a project."""
    return answer(request.house.projects.set_member(request.asker, project, uid, None, key=checked_key(key)), request.house.clock)


ROUTES = (list_projects, show_project, enter_project, list_members, set_member, remove_member)
