"""Verbs `users`, `add-user` and `remove-user` of `fairbank project`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import add_project, add_writing
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.cli.framework.selectors import find_project
from fairbank.cli.framework.write import WriteRequest, numbered, post, tell
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

ROLES = ("member", "coordinator", "pi")
COLUMNS = (
    Column("USER", text("user")),
    Column("UID", text("uid"), right=True),
    Column("ROLE", text("role")),
)


def show_members(context: Context, options: Namespace) -> int:
    """Print one project with its members."""
    if shown_columns(context, COLUMNS):
        return 0
    project = context.one(f"/project/{find_project(context, options.project)['id']}")
    members = [{**each, "user": user_name(each["uid"])} for each in project["members"]]
    parent = f", parent {project['parent']}" if project["parent"] is not None else ""
    removed = ", removed" if project["removed"] else ""
    caption = (
        f"Project {project['account']}: number {project['id']}, group {project['gname']}"
        f" ({project['gid']}){parent}{removed}"
    )
    card = {key: value for key, value in project.items() if key != "members"}
    show(
        context,
        Listing(
            "fairbank.member/1",
            COLUMNS,
            members,
            caption,
            empty=f"{caption}; no members",
            more={"project": card},
        ),
    )
    return 0


def _add_member(parser: Parser) -> None:
    add_project(parser)
    parser.add_argument("user", metavar="USER", help="a user, by name or number")
    parser.add_argument(
        "--role",
        choices=ROLES,
        default="member",
        help="a coordinator manages members and caps for the PI (default: member)",
    )
    add_writing(parser, reason="optional")


def _add_user(context: Context, options: Namespace) -> int:
    project, uid = find_project(context, options.project), uid_of(options.user, "USER")
    body = {"role": options.role} | ({"comment": options.reason} if options.reason else {})
    answer = post(context, WriteRequest("PUT", f"/project/{project['id']}/member/{uid}", body))
    return tell(
        context,
        "fairbank.member/1",
        answer,
        numbered(answer, f"{user_name(uid)} is {options.role} of {project['account']}"),
    )


def _add_removal(parser: Parser) -> None:
    add_project(parser)
    parser.add_argument("user", metavar="USER", help="a user, by name or number")
    add_writing(parser, reason="none")


def _remove_user(context: Context, options: Namespace) -> int:
    project, uid = find_project(context, options.project), uid_of(options.user, "USER")
    question = f"Take {user_name(uid)} out of {project['account']}?"
    answer = post(
        context, WriteRequest("DELETE", f"/project/{project['id']}/member/{uid}", None, question)
    )
    return tell(
        context,
        "fairbank.member/1",
        answer,
        numbered(answer, f"{user_name(uid)} is not in {project['account']} any more"),
    )


VERBS = {
    "users": Command(
        "list the members of a project",
        (
            "fairbank project users chem_qmc",
            "fairbank project users 12 -P -n",
            "fairbank project users chem_qmc --csv",
        ),
        add_project,
        show_members,
    ),
    "add-user": Command(
        "give a user a role; for PIs, coordinators, staff",
        (
            "fairbank project add-user chem_qmc ayla",
            "fairbank project add-user chem_qmc jorge --role coordinator",
            "fairbank project add-user chem_qmc 1234 --role pi --dry-run",
        ),
        _add_member,
        _add_user,
    ),
    "remove-user": Command(
        "remove a user; for PIs, coordinators, staff",
        (
            "fairbank project remove-user chem_qmc ayla",
            "fairbank project remove-user chem_qmc 1234 --yes",
            "fairbank project remove-user chem_qmc ayla --dry-run",
        ),
        _add_removal,
        _remove_user,
    ),
}
