"""Projects and their members."""

from __future__ import annotations

from typing import Annotated, Literal

from litestar import Response, delete, patch, post, put
from litestar.params import JSONBody, QueryParameter
from msgspec import structs

from fairbank.bank.project import Role
from fairbank.bank.query import PAGE_MAX, Page, ProjectQuery
from fairbank.bank.requests import AmendProject, CreateProject, RemoveProject
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.rest.answering import answer, done_of
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import (
    PAGE,
    Key,
    Number,
    OneName,
    OnePage,
    OneUid,
    UidNumber,
    checked_key,
)
from fairbank.rest.bodies.answers import (
    EnteredProject,
    Granted,
    Listing,
    MemberRow,
    ProjectCard,
    ProjectRow,
    Single,
)
from fairbank.rest.bodies.requests import NewNames, NewProject, NewRole
from fairbank.rest.verbs import again, reads, writes
from fairbank.rest.views import by_id, cut, listing, member_row, project_card, project_row, single

Removed = Annotated[
    Literal["no", "yes", "any"],
    QueryParameter(description="whether those that were removed are listed"),
]


@reads("/project", dependencies={"page": PAGE})
def list_projects(
    request: Asking,
    page: OnePage,
    gid: OneUid = None,
    gname: OneName = None,
    account: OneName = None,
    removed: Removed = "no",
) -> Listing[ProjectRow]:
    """The projects that the asker may see. Those that were removed are for staff only."""
    there = {"no": False, "yes": True}.get(removed)
    query = ProjectQuery(
        visibility=request.asker.visibility, gid=gid, gname=gname, account=account, removed=there
    )
    found, following = cut(page.limit, request.services.projects.find(query, page.and_one), by_id)
    return listing(
        "project", request.services.clock, [project_row(each) for each in found], following
    )


@reads("/project/{project:int}")
def show_project(request: Asking, project: Number) -> Single[ProjectCard]:
    """One project with its members, the first 1,000 of them."""
    found = request.services.projects.get(request.asker, project)
    members = request.services.projects.members(request.asker, project, Page(PAGE_MAX))
    return single("project", request.services.clock, project_card(found, members))


@writes(post, "/project", responses=again(Single[EnteredProject]))
def enter_project(
    request: Asking, data: JSONBody[NewProject], key: Key = None
) -> Response[Single[EnteredProject]]:
    """Enter a Unix group that is to have credit."""
    bank_request = CreateProject(
        gname=ids.name(data.gname, field="gname"),
        gid=data.gid,
        account=ids.name(data.account if data.account is not None else data.gname, field="account"),
        parent=data.parent,
        key=checked_key(key),
    )
    done = done_of(request.services.projects.create(request.asker, bank_request))
    row = project_row(request.services.directory.by_id(done.project or 0))
    entered = EnteredProject(**structs.asdict(row), entry=done.entry or None)
    return Response(
        single("project", request.services.clock, entered), status_code=200 if done.again else 201
    )


@writes(patch, "/project/{project:int}")
def amend_project(
    request: Asking, project: Number, data: JSONBody[NewNames], key: Key = None
) -> Single[Granted]:
    """Change a project's names or its parent, or bring it back. Its number stays, and by it its books.

    Its gid and account change only while it never had an allocation or a run.
    """
    bank_request = AmendProject(
        project=project,
        gname=None if data.gname is None else ids.name(data.gname, field="gname"),
        gid=data.gid,
        account=None if data.account is None else ids.name(data.account, field="account"),
        parent=data.parent,
        restore=data.restore,
        key=checked_key(key),
        comment=None if data.comment is None else ids.comment(data.comment),
    )
    if (
        bank_request.gname,
        bank_request.gid,
        bank_request.account,
        bank_request.parent,
        bank_request.restore,
    ) == (None, None, None, None, False):
        raise InvalidInput(
            "nothing is to change", remedy="send gname, gid, account, parent or restore"
        )
    return answer(
        request.services.projects.amend(request.asker, bank_request), request.services.clock
    )


@writes(delete, "/project/{project:int}", status_code=200)
def remove_project(request: Asking, project: Number, key: Key = None) -> Single[Granted]:
    """Let a project be no more, once no other is under it, its allocations are over and its runs have ended. Staff still read its books,
    and its names stay taken, so that nobody who comes after gets at them."""
    return answer(
        request.services.projects.remove(
            request.asker, RemoveProject(project=project, key=checked_key(key))
        ),
        request.services.clock,
    )


@reads("/project/{project:int}/member", dependencies={"page": PAGE})
def list_members(request: Asking, project: Number, page: OnePage) -> Listing[MemberRow]:
    """The members of a project, by uid."""
    found, following = cut(
        page.limit,
        request.services.projects.members(request.asker, project, page.and_one),
        lambda each: each.uid,
    )
    return listing(
        "member", request.services.clock, [member_row(each) for each in found], following
    )


@writes(put, "/project/{project:int}/member/{uid:int}")
def set_member(
    request: Asking, project: Number, uid: UidNumber, data: JSONBody[NewRole], key: Key = None
) -> Single[Granted]:
    """Give a user a role in a project."""
    comment = None if data.comment is None else ids.comment(data.comment)
    outcome = request.services.projects.set_member(
        request.asker, project, uid, Role(data.role), comment=comment, key=checked_key(key)
    )
    return answer(outcome, request.services.clock)


@writes(delete, "/project/{project:int}/member/{uid:int}", status_code=200)
def remove_member(
    request: Asking, project: Number, uid: UidNumber, key: Key = None
) -> Single[Granted]:
    """Take a user out of a project."""
    return answer(
        request.services.projects.set_member(
            request.asker, project, uid, None, key=checked_key(key)
        ),
        request.services.clock,
    )


ROUTES = (
    list_projects,
    show_project,
    enter_project,
    amend_project,
    remove_project,
    list_members,
    set_member,
    remove_member,
)
