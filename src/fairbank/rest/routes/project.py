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
from fairbank.rest.parameters import (
    PAGE,
    Key,
    Number,
    OneName,
    OnePage,
    OneUid,
    UidNumber,
    check_key,
)
from fairbank.rest.request import ApiRequest
from fairbank.rest.responses import done_of, granted_response
from fairbank.rest.routing import existing, read_route, write_route
from fairbank.rest.schemas.alloc import (
    EnteredProject,
    MemberRow,
    ProjectDetails,
    ProjectRow,
    member_row,
    project_details,
    project_row,
)
from fairbank.rest.schemas.answers import Granted, ItemResponse, ListResponse
from fairbank.rest.schemas.envelope import item_response, page_response
from fairbank.rest.schemas.requests import NewNames, NewProject, NewRole

Removed = Annotated[
    Literal["no", "yes", "any"], QueryParameter(description="select by removed or not")
]


@read_route("/project", dependencies={"page": PAGE})
def list_projects(
    request: ApiRequest,
    page: OnePage,
    gid: OneUid = None,
    gname: OneName = None,
    account: OneName = None,
    removed: Removed = "no",
) -> ListResponse[ProjectRow]:
    """List the projects that the user may see. Removed projects are listed for staff only."""
    query = ProjectQuery(
        visibility=request.identity.visibility,
        gid=gid,
        gname=gname,
        account=account,
        removed={"no": False, "yes": True}.get(removed),
    )
    projects = request.services.projects.find(query, page.and_one)
    return page_response(ProjectRow, request.context, page.limit, projects, project_row)


@read_route("/project/{project:int}")
def show_project(request: ApiRequest, project: Number) -> ItemResponse[ProjectDetails]:
    """Return one project with its first 1,000 members."""
    service = request.services.projects
    details = project_details(
        service.get(request.identity, project),
        service.members(request.identity, project, Page(PAGE_MAX)),
    )
    return item_response(request.context, details)


@write_route(post, "/project", responses=existing(ItemResponse[EnteredProject]))
def enter_project(
    request: ApiRequest, data: JSONBody[NewProject], key: Key = None
) -> Response[ItemResponse[EnteredProject]]:
    """Create a project for a Unix group."""
    account = data.gname if data.account is None else data.account
    bank_request = CreateProject(
        gname=ids.name(data.gname, field="gname"),
        gid=data.gid,
        account=ids.name(account, field="account"),
        parent=data.parent,
        key=check_key(key),
    )
    done = done_of(request.services.projects.create(request.identity, bank_request))
    row = project_row(request.services.project_cache.by_id(done.project or 0))
    entered = EnteredProject(**structs.asdict(row), entry=done.entry or None)
    return Response(item_response(request.context, entered), status_code=200 if done.again else 201)


@write_route(patch, "/project/{project:int}")
def amend_project(
    request: ApiRequest, project: Number, data: JSONBody[NewNames], key: Key = None
) -> ItemResponse[Granted]:
    """Change the names or the parent of a project, or restore a removed one.

    Its number and journal stay. Its gid and account can change only until its first allocation or
    run.
    """
    if structs.replace(data, comment=None) == NewNames():
        raise InvalidInput(
            "the request changes nothing", remedy="send gname, gid, account, parent or restore"
        )
    bank_request = AmendProject(
        project=project,
        gname=None if data.gname is None else ids.name(data.gname, field="gname"),
        gid=data.gid,
        account=None if data.account is None else ids.name(data.account, field="account"),
        parent=data.parent,
        restore=data.restore,
        key=check_key(key),
        comment=None if data.comment is None else ids.comment(data.comment),
    )
    outcome = request.services.projects.amend(request.identity, bank_request)
    return granted_response(outcome, request.context)


@write_route(delete, "/project/{project:int}", status_code=200)
def remove_project(request: ApiRequest, project: Number, key: Key = None) -> ItemResponse[Granted]:
    """Remove a project that has no child projects, no valid allocations and no open runs.

    Staff can still read its journal. Its names stay reserved, so that no later project gets access
    to it.
    """
    bank_request = RemoveProject(project=project, key=check_key(key))
    outcome = request.services.projects.remove(request.identity, bank_request)
    return granted_response(outcome, request.context)


@read_route("/project/{project:int}/member", dependencies={"page": PAGE})
def list_members(request: ApiRequest, project: Number, page: OnePage) -> ListResponse[MemberRow]:
    """List the members of a project, by uid. `via` is `group` for members through its Unix
    group."""
    members = request.services.projects.members(request.identity, project, page.and_one)
    return page_response(
        MemberRow, request.context, page.limit, members, member_row, lambda row: row.member.uid
    )


@write_route(put, "/project/{project:int}/member/{uid:int}")
def set_member(
    request: ApiRequest, project: Number, uid: UidNumber, data: JSONBody[NewRole], key: Key = None
) -> ItemResponse[Granted]:
    """Give a user a role in a project."""
    comment = None if data.comment is None else ids.comment(data.comment)
    outcome = request.services.projects.set_member(
        request.identity, project, uid, Role(data.role), comment=comment, key=check_key(key)
    )
    return granted_response(outcome, request.context)


@write_route(delete, "/project/{project:int}/member/{uid:int}", status_code=200)
def remove_member(
    request: ApiRequest, project: Number, uid: UidNumber, key: Key = None
) -> ItemResponse[Granted]:
    """Remove a user from a project."""
    projects = request.services.projects
    outcome = projects.set_member(request.identity, project, uid, None, key=check_key(key))
    warnings = projects.warnings_of_removal(request.identity, project, uid)
    return granted_response(outcome, request.context, warnings)
