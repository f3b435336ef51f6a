"""Command `fairbank project`: projects. `project_members` has the verbs for their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.admin import project_members as members
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.options import add_project, add_writing, unix_id
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.cli.framework.selectors import find_project, group_query
from fairbank.cli.framework.write import WriteRequest, numbered, post, tell
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

COLUMNS = (
    Column("ID", text("id"), right=True),
    Column("PROJECT", text("account")),
    Column("GROUP", text("gname"), drop=2),
    Column("GID", text("gid"), right=True, drop=1),
    Column("PARENT", text("parent"), right=True, drop=3),
)
REMOVED = Column("REMOVED", lambda row, look: "yes" if row["removed"] else "", drop=4)


def _add_filters(parser: Parser) -> None:
    parser.add_argument(
        "-a", "--all", action="store_true", help="those that were removed, too; for staff"
    )
    parser.add_argument(
        "-A", "--account", metavar="PROJECT", help="only the project with this Slurm account"
    )
    parser.add_argument(
        "-g",
        "--group",
        metavar="GROUP",
        help="only the project of this Unix group, by name or number",
    )


def _list(context: Context, options: Namespace) -> int:
    columns = (*COLUMNS, REMOVED) if options.all else COLUMNS
    if shown_columns(context, columns):
        return 0
    wanted = {
        "account": options.account,
        "removed": "any" if options.all else None,
        **group_query(options.group),
    }
    rows = context.rows("/project", wanted)
    empty = "There is no such project that you may see." if rows else _none(context, wanted)
    show(context, Listing("fairbank.project/1", columns, rows, empty=empty))
    return 0


def _none(context: Context, wanted: Mapping[str, object]) -> str:
    """Return the text for an empty list; staff see when a requested project was removed."""
    named = [
        f"{option} {value}"
        for option, value in (("-A", wanted["account"]), ("-g", context.options.group))
        if value is not None
    ]
    gone = (
        context.rows("/project", {**wanted, "removed": "yes"})
        if named and not context.options.all
        else []
    )
    if not gone:
        return "There is no such project that you may see."
    said = ", ".join(f"{plain(row['account'])} (number {row['id']})" for row in gone)
    return (
        f"There is no such project now; {said} was removed. See: fairbank project list -a"
        f" {plain(' '.join(named))}"
    )


def _add_create(parser: Parser) -> None:
    parser.add_argument("group", metavar="GROUP", help="the name of the Unix group")
    parser.add_argument(
        "--gid", metavar="N", type=unix_id, help="its number (default: as this host knows it)"
    )
    parser.add_argument(
        "-A", "--account", metavar="NAME", help="the Slurm account (default: named like the group)"
    )
    parser.add_argument(
        "--parent", metavar="PROJECT", help="the project whose shared credit it may draw on"
    )
    add_writing(parser, reason="none")


def _create(context: Context, options: Namespace) -> int:
    gid = _gid_of(options.group) if options.gid is None else options.gid
    parent = (
        None if options.parent is None else find_project(context, options.parent, "--parent")["id"]
    )
    body = {
        "gname": options.group,
        "gid": gid,
        "account": options.account or options.group,
        "parent": parent,
    }
    answer = post(context, WriteRequest("POST", "/project", body))
    if answer is None:
        return tell(context, "fairbank.project/1", None, "")
    sentence = (
        f"project {answer['account']}: number {answer['id']}, group {answer['gname']}"
        f" ({answer['gid']})"
    )
    return tell(context, "fairbank.project/1", answer, numbered(answer, sentence))


def _add_set(parser: Parser) -> None:
    add_project(parser)
    parser.add_argument(
        "--group",
        metavar="GROUP",
        help="the name of its Unix group from now on; its number too, as this host knows it",
    )
    parser.add_argument(
        "--gid",
        metavar="N",
        type=unix_id,
        help="the number of its Unix group from now on; only of a project that was never used",
    )
    parser.add_argument(
        "-A",
        "--account",
        metavar="NAME",
        help="its Slurm account from now on; only of a project that was never used",
    )
    parent = parser.add_mutually_exclusive_group()
    parent.add_argument(
        "--parent", metavar="PROJECT", help="the project whose shared credit it may draw on"
    )
    parent.add_argument(
        "--no-parent", action="store_true", help="let it draw on its own credit alone"
    )
    parser.add_argument(
        "--restore", action="store_true", help="bring back a project that was removed"
    )
    add_writing(parser, reason="optional")


def _set(context: Context, options: Namespace) -> int:
    project = find_project(context, options.project)
    gid = (
        _gid_of(options.group) if options.gid is None and options.group is not None else options.gid
    )
    parent = (
        0
        if options.no_parent
        else (
            None
            if options.parent is None
            else find_project(context, options.parent, "--parent")["id"]
        )
    )
    given = {
        "gname": options.group,
        "gid": gid,
        "account": options.account,
        "parent": parent,
        "restore": options.restore or None,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise InvalidInput(
            "nothing is to change",
            remedy="name --group, --gid, -A, --parent, --no-parent or --restore",
        )
    body = changes | ({"comment": options.reason} if options.reason else {})
    answer = post(context, WriteRequest("PATCH", f"/project/{project['id']}", body))
    return tell(
        context,
        "fairbank.project/1",
        answer,
        numbered(answer, f"project {project['id']} is changed"),
    )


def _add_named_removal(parser: Parser) -> None:
    add_project(parser)
    add_writing(parser, reason="none")


def _remove(context: Context, options: Namespace) -> int:
    project = find_project(context, options.project)
    question = (
        f"Remove project {project['account']}? Staff still read its books, and its names stay"
        " taken."
    )
    answer = post(context, WriteRequest("DELETE", f"/project/{project['id']}", None, question))
    sentence = (
        f"project {project['account']} is removed; bring it back: fairbank project set"
        f" {project['id']} --restore"
    )
    return tell(context, "fairbank.project/1", answer, numbered(answer, sentence))


def _gid_of(group: str) -> int:
    from grp import getgrnam

    try:
        return getgrnam(group).gr_gid
    except (KeyError, ValueError) as bad:
        raise NotFound(
            f"there is no group {group[:64]!r} on this host",
            field="GROUP",
            remedy="name its number with --gid",
        ) from bad


COMMAND = Noun(
    "projects and their members",
    {
        "list": Command(
            "list the projects that you may see",
            (
                "fairbank project list",
                "fairbank project list -g chem",
                "fairbank project list --json",
            ),
            _add_filters,
            _list,
        ),
        "show": Command(
            "show a project and its members",
            (
                "fairbank project show chem_qmc",
                "fairbank project show 12",
                "fairbank project show chem_qmc --json",
            ),
            add_project,
            members.show_members,
        ),
        "create": Command(
            "register a Unix group that will get credit; for staff",
            (
                "fairbank project create chem_qmc",
                "fairbank project create chem_qmc --gid 5012 -A chem --parent chemistry",
                "fairbank project create chem_qmc --dry-run",
            ),
            _add_create,
            _create,
        ),
        "set": Command(
            "change a project's names or parent, or restore it; for staff",
            (
                "fairbank project set chem_qmc --parent chemistry",
                "fairbank project set 12 --group qmc --gid 5012",
                "fairbank project set 12 --restore --dry-run",
            ),
            _add_set,
            _set,
        ),
        "remove": Command(
            "remove a project whose credit and runs have ended; for staff",
            (
                "fairbank project remove chem_qmc",
                "fairbank project remove 12 --yes",
                "fairbank project remove chem_qmc --dry-run",
            ),
            _add_named_removal,
            _remove,
        ),
        **members.VERBS,
    },
    default="list",
)
