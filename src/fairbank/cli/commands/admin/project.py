"""Command `fairbank project`: projects and their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import (
    add_group,
    add_option,
    add_project,
    add_user,
    add_writing,
    unix_id,
)
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.selectors import check_accounts, check_group, find_project, group_query
from fairbank.cli.framework.write import WriteRequest, write
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.ids import name as check_name
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row

ROLES = ("member", "coordinator", "pi")
COLUMNS = (
    Column("ID", text("id"), right=True),
    Column("PROJECT", text("account")),
    Column("GROUP", text("gname"), drop=2),
    Column("GID", text("gid"), right=True, drop=1),
    Column("PARENT", text("parent"), right=True, drop=3),
)
REMOVED = Column("REMOVED", lambda row, form: "yes" if row["removed"] else "", drop=4)
MEMBERS = (
    Column("USER", text("user")),
    Column("UID", text("uid"), right=True),
    Column("ROLE", text("role")),
    Column("VIA", lambda row, form: "Unix group" if row["via"] == "group" else row["via"]),
)


def _columns(options: Namespace) -> tuple[Column, ...]:
    return (*COLUMNS, REMOVED) if options.all else COLUMNS


def _add_filters(parser: Parser) -> None:
    add_option(parser, "-a, --all", "those that were removed, too; for staff")
    add_option(parser, "-A, --account PROJECT", "only the project with this Slurm account")
    add_group(parser, "only the project of this Unix group, by name or number")


def _list(context: Context, options: Namespace) -> int:
    wanted = {
        "account": options.account,
        "removed": "any" if options.all else None,
        **group_query(options.group),
    }
    rows = context.rows("/project", wanted)
    empty = "" if rows else _none(context, wanted)
    heading = caption(context, unit=False)
    listing = Listing("fairbank.project/1", _columns(options), rows, heading, empty=empty)
    return show(context, listing)


def _none(context: Context, wanted: Mapping[str, object]) -> str:
    """Return the text for an empty list; staff see when a requested project was removed."""
    named = [
        f"{option} {value}"
        for option, value in (("-A", wanted["account"]), ("-g", context.options.group))
        if value is not None
    ]
    removed_rows = (
        context.rows("/project", {**wanted, "removed": "yes"})
        if named and not context.options.all
        else []
    )
    if not removed_rows:
        account = context.options.account
        check_accounts(context, [account] if account else None)
        check_group(context, context.options.group)
        return "There is no such project that you may see."
    names = ", ".join(f"{plain(row['account'])} (number {row['id']})" for row in removed_rows)
    return (
        f"There is no such project now; {names} was removed. See: fairbank project list -a"
        f" {plain(' '.join(named))}"
    )


def _show(context: Context, options: Namespace) -> int:
    """Print one project with its members."""
    project = context.one(f"/project/{find_project(context, options.project)['id']}")
    members = [{**member, "user": user_name(member["uid"])} for member in project.pop("members")]
    parent = f", parent {project['parent']}" if project["parent"] is not None else ""
    removed = ", removed" if project["removed"] else ""
    title = (
        f"Project {project['account']}: number {project['id']}, group {project['gname']}"
        f" ({project['gid']}){parent}{removed}"
    )
    listing = Listing(
        "fairbank.member/1",
        MEMBERS,
        members,
        f"{title}\n{caption(context, unit=False)}",
        empty=f"{title}; no members",
        more={"project": project},
    )
    return show(context, listing)


def _add_create(parser: Parser) -> None:
    add_option(parser, "group GROUP", "the name of the Unix group")
    add_option(parser, "--gid N", "its number (default: as this host knows it)", type=unix_id)
    add_option(parser, "-A, --account NAME", "the Slurm account (default: named like the group)")
    add_option(parser, "--parent PROJECT", "the project whose shared credit it may draw on")
    add_writing(parser, reason="none")


def _create(context: Context, options: Namespace) -> int:
    check_name(options.group, field="GROUP")
    body = {
        "gname": options.group,
        "gid": _gid_of(options.group, "GROUP") if options.gid is None else options.gid,
        "account": options.group if options.account is None else options.account,
        "parent": _parent(context, options),
    }

    def sentence(answer: Row) -> str:
        existed = "" if answer["entry"] else " exists already"
        return (
            f"project {answer['account']}{existed}: number {answer['id']}, group"
            f" {answer['gname']} ({answer['gid']})"
        )

    return write(context, "fairbank.project/1", WriteRequest("POST", "/project", body), sentence)


def _parent(context: Context, options: Namespace) -> object:
    """Return the number of the project that --parent names, if any."""
    if options.parent is None:
        return None
    return find_project(context, options.parent, "--parent")["id"]


def _add_set(parser: Parser) -> None:
    add_project(parser)
    about = "the name of its Unix group from now on; its number too, as this host knows it"
    add_option(parser, "--group GROUP", about)
    about = "the number of its Unix group from now on; only of a project that was never used"
    add_option(parser, "--gid N", about, type=unix_id)
    about = "its Slurm account from now on; only of a project that was never used"
    add_option(parser, "-A, --account NAME", about)
    parent = parser.add_mutually_exclusive_group()
    add_option(parent, "--parent PROJECT", "the project whose shared credit it may draw on")
    add_option(parent, "--no-parent", "let it draw on its own credit alone")
    add_option(parser, "--restore", "bring back a project that was removed")
    add_writing(parser, reason="optional")


def _set(context: Context, options: Namespace) -> int:
    project = find_project(context, options.project)
    gid = options.gid
    if gid is None and options.group is not None:
        gid = _gid_of(options.group, "--group")
    values = {
        "gname": options.group,
        "gid": gid,
        "account": options.account,
        "parent": 0 if options.no_parent else _parent(context, options),
        "restore": options.restore or None,
    }
    changes = {name: value for name, value in values.items() if value is not None}
    if not changes:
        raise InvalidInput(
            "nothing is to change",
            remedy="name --group, --gid, -A, --parent, --no-parent or --restore",
        )
    request = WriteRequest("PATCH", f"/project/{project['id']}", changes)
    return write(context, "fairbank.granted/1", request, f"project {project['id']} is changed")


def _add_removal(parser: Parser) -> None:
    add_project(parser)
    add_writing(parser, reason="none")


def _remove(context: Context, options: Namespace) -> int:
    project = find_project(context, options.project)
    question = (
        f"Remove project {project['account']}? Staff still read its journal, and its names stay"
        " taken."
    )
    request = WriteRequest("DELETE", f"/project/{project['id']}", None, question, needs_yes=True)
    sentence = (
        f"project {project['account']} is removed; bring it back: fairbank project set"
        f" {project['id']} --restore"
    )
    return write(context, "fairbank.granted/1", request, sentence)


def _gid_of(group: str, field: str) -> int:
    from grp import getgrnam

    try:
        return getgrnam(group).gr_gid
    except (KeyError, ValueError) as bad:
        raise NotFound(
            f"there is no group {group[:64]!r} on this host",
            field=field,
            remedy="name its number with --gid",
        ) from bad


def _add_member(parser: Parser) -> None:
    add_project(parser)
    add_user(parser)
    about = "a coordinator manages members and caps for the PI (default: member)"
    add_option(parser, "--role", about, choices=ROLES, default="member")
    add_writing(parser, reason="optional")


def _add_user(context: Context, options: Namespace) -> int:
    project, uid = find_project(context, options.project), uid_of(options.user, "USER")
    path = f"/project/{project['id']}/member/{uid}"
    sentence = f"{user_name(uid)} is {options.role} of {project['account']}"
    request = WriteRequest("PUT", path, {"role": options.role})
    return write(context, "fairbank.granted/1", request, sentence)


def _add_member_removal(parser: Parser) -> None:
    add_project(parser)
    add_user(parser)
    add_writing(parser, reason="none")


def _remove_user(context: Context, options: Namespace) -> int:
    project, uid = find_project(context, options.project), uid_of(options.user, "USER")
    question = f"Take {user_name(uid)} out of {project['account']}?"
    request = WriteRequest(
        "DELETE", f"/project/{project['id']}/member/{uid}", None, question, needs_yes=True
    )
    # Not "is no member any more": they may be one through the Unix group, as the answer warns.
    sentence = f"the role of {user_name(uid)} in {project['account']} is removed"
    return write(context, "fairbank.granted/1", request, sentence)


COMMAND = Noun(
    "projects and their members",
    {
        "list": Command(
            "list the projects that you may see",
            ("{}", "{} -g chem", "{} --json"),
            _add_filters,
            _list,
            columns=_columns,
        ),
        "show": Command(
            "show a project and its members",
            ("{} chem_qmc", "{} 12", "{} chem_qmc --json"),
            add_project,
            _show,
            columns=MEMBERS,
        ),
        "create": Command(
            "register a Unix group that will get credit; for staff",
            (
                "{} chem_qmc",
                "{} chem_qmc --gid 5012 -A chem --parent chemistry",
                "{} chem_qmc --dry-run",
            ),
            _add_create,
            _create,
        ),
        "set": Command(
            "change a project's names or parent, or restore it; for staff",
            (
                "{} chem_qmc --parent chemistry",
                "{} 12 --group qmc --gid 5012",
                "{} 12 --restore --dry-run",
            ),
            _add_set,
            _set,
        ),
        "remove": Command(
            "remove a project whose credit and runs have ended; for staff",
            ("{} chem_qmc", "{} 12 --yes", "{} chem_qmc --dry-run"),
            _add_removal,
            _remove,
        ),
        "users": Command(
            "list the members of a project",
            ("{} chem_qmc", "{} 12 -P -n", "{} chem_qmc --csv"),
            add_project,
            _show,
            columns=MEMBERS,
        ),
        "add-user": Command(
            "give a user a role; for PIs, coordinators, staff",
            (
                "{} chem_qmc ayla",
                "{} chem_qmc jorge --role coordinator",
                "{} chem_qmc 1234 --role pi --dry-run",
            ),
            _add_member,
            _add_user,
        ),
        "remove-user": Command(
            "remove a user; for PIs, coordinators, staff",
            ("{} chem_qmc ayla", "{} chem_qmc 1234 --yes", "{} chem_qmc ayla --dry-run"),
            _add_member_removal,
            _remove_user,
        ),
    },
    default="list",
)
