"""`fairbank project`: who is granted credit, and who speaks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.choosing import group_query, the_project
from fairbank.cli.command import Command, Noun
from fairbank.cli.options import add_writing, unix_id
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.cli.people import uid_of, user_name
from fairbank.cli.posting import Posting, post, tell
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text
from fairbank.values.trouble import Malformed, Unknown

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.report.columns import Row

ROLES = ("member", "coordinator", "pi")
COLUMNS = (
    Column("ID", text("id"), right=True),
    Column("PROJECT", text("account")),
    Column("GROUP", text("gname"), drop=2),
    Column("GID", text("gid"), right=True, drop=1),
    Column("PARENT", text("parent"), right=True, drop=3),
)
REMOVED = Column("REMOVED", lambda row, look: "yes" if row["removed"] else "", drop=4)
MEMBER_COLUMNS = (Column("USER", text("user")), Column("UID", text("uid"), right=True), Column("ROLE", text("role")))


def _add_project(parser: Parser) -> None:
    parser.add_argument("project", metavar="PROJECT", help="its account, its group, or its number")


def _add_filters(parser: Parser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="those that were removed, too; for staff")
    parser.add_argument("-A", "--account", metavar="PROJECT", help="only the project with this Slurm account")
    parser.add_argument("-g", "--group", metavar="GROUP", help="only the project of this Unix group, by name or number")


def _list(desk: Desk, options: Namespace) -> int:
    columns = (*COLUMNS, REMOVED) if options.all else COLUMNS
    if shown_columns(desk, columns):
        return 0
    wanted = {"account": options.account, "removed": "any" if options.all else None, **group_query(options.group)}
    rows = desk.rows("/project", wanted)
    empty = "There is no such project that you may see." if rows else _none(desk, wanted)
    show(desk, Listing("fairbank.project/1", columns, rows, empty=empty))
    return 0


def _none(desk: Desk, wanted: Mapping[str, object]) -> str:
    """What stands in place of an empty list: to staff, that what was asked for was removed, where it was."""
    named = [f"{option} {value}" for option, value in (("-A", wanted["account"]), ("-g", desk.options.group)) if value is not None]
    gone = desk.rows("/project", {**wanted, "removed": "yes"}) if named and not desk.options.all else []
    if not gone:
        return "There is no such project that you may see."
    said = ", ".join(f"{plain(row['account'])} (number {row['id']})" for row in gone)
    return f"There is no such project now; {said} was removed. See: fairbank project list -a {plain(' '.join(named))}"


def _show(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, MEMBER_COLUMNS):
        return 0
    project = desk.one(f"/project/{the_project(desk, options.project)['id']}")
    members = [{**each, "user": user_name(each["uid"])} for each in project["members"]]
    parent = f", parent {project['parent']}" if project["parent"] is not None else ""
    removed = ", removed" if project["removed"] else ""
    caption = f"Project {project['account']}: number {project['id']}, group {project['gname']} ({project['gid']}){parent}{removed}"
    card = {key: value for key, value in project.items() if key != "members"}
    show(desk, Listing("fairbank.member/1", MEMBER_COLUMNS, members, caption, empty=f"{caption}; no members", more={"project": card}))
    return 0


def _add_create(parser: Parser) -> None:
    parser.add_argument("group", metavar="GROUP", help="the name of the Unix group")
    parser.add_argument("--gid", metavar="N", type=unix_id, help="its number (usual: as this host knows it)")
    parser.add_argument("-A", "--account", metavar="NAME", help="the Slurm account (usual: named like the group)")
    parser.add_argument("--parent", metavar="PROJECT", help="the project whose shared credit it may draw on")
    add_writing(parser, reason="none")


def _create(desk: Desk, options: Namespace) -> int:
    gid = _gid_of(options.group) if options.gid is None else options.gid
    parent = None if options.parent is None else the_project(desk, options.parent, "--parent")["id"]
    body = {"gname": options.group, "gid": gid, "account": options.account or options.group, "parent": parent}
    answer = post(desk, Posting("POST", "/project", body, f"Make project {body['account']}?"))
    if answer is None:
        return tell(desk, "fairbank.project/1", None, "")
    sentence = f"project {answer['account']}: number {answer['id']}, group {answer['gname']} ({answer['gid']})"
    return tell(desk, "fairbank.project/1", answer, _numbered(answer, sentence))


def _add_set(parser: Parser) -> None:
    _add_project(parser)
    parser.add_argument("--group", metavar="GROUP", help="the name of its Unix group from now on; its number too, as this host knows it")
    parser.add_argument(
        "--gid", metavar="N", type=unix_id, help="the number of its Unix group from now on; only of a project that was never used"
    )
    parser.add_argument("-A", "--account", metavar="NAME", help="its Slurm account from now on; only of a project that was never used")
    parent = parser.add_mutually_exclusive_group()
    parent.add_argument("--parent", metavar="PROJECT", help="the project whose shared credit it may draw on")
    parent.add_argument("--no-parent", action="store_true", help="let it draw on its own credit alone")
    parser.add_argument("--restore", action="store_true", help="bring back a project that was removed")
    add_writing(parser, reason="optional")


def _set(desk: Desk, options: Namespace) -> int:
    project = the_project(desk, options.project)
    gid = _gid_of(options.group) if options.gid is None and options.group is not None else options.gid
    parent = 0 if options.no_parent else None if options.parent is None else the_project(desk, options.parent, "--parent")["id"]
    given = {"gname": options.group, "gid": gid, "account": options.account, "parent": parent, "restore": options.restore or None}
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise Malformed("nothing is to change", remedy="name --group, --gid, -A, --parent, --no-parent or --restore")
    body = changes | ({"comment": options.reason} if options.reason else {})
    answer = post(desk, Posting("PATCH", f"/project/{project['id']}", body, f"Change project {project['account']}?"))
    return tell(desk, "fairbank.project/1", answer, _numbered(answer, f"project {project['id']} is changed"))


def _add_named_removal(parser: Parser) -> None:
    _add_project(parser)
    add_writing(parser, reason="none")


def _remove(desk: Desk, options: Namespace) -> int:
    project = the_project(desk, options.project)
    question = f"Remove project {project['account']}? Staff still read its books, and its names stay taken."
    answer = post(desk, Posting("DELETE", f"/project/{project['id']}", None, question))
    sentence = f"project {project['account']} is removed; bring it back: fairbank project set {project['id']} --restore"
    return tell(desk, "fairbank.project/1", answer, _numbered(answer, sentence))


def _gid_of(group: str) -> int:
    from grp import getgrnam

    try:
        return getgrnam(group).gr_gid
    except (KeyError, ValueError) as bad:
        raise Unknown(f"there is no group {group[:64]!r} on this host", field="GROUP", remedy="name its number with --gid") from bad


def _add_member(parser: Parser) -> None:
    _add_project(parser)
    parser.add_argument("user", metavar="USER", help="a user, by name or number")
    parser.add_argument("--role", choices=ROLES, default="member", help="a coordinator manages members and caps for the PI (usual: member)")
    add_writing(parser, reason="optional")


def _add_user(desk: Desk, options: Namespace) -> int:
    project, uid = the_project(desk, options.project), uid_of(options.user, "USER")
    body = {"role": options.role} | ({"comment": options.reason} if options.reason else {})
    question = f"Make {user_name(uid)} {options.role} of {project['account']}?"
    answer = post(desk, Posting("PUT", f"/project/{project['id']}/member/{uid}", body, question))
    return tell(desk, "fairbank.member/1", answer, _numbered(answer, f"{user_name(uid)} is {options.role} of {project['account']}"))


def _numbered(answer: Row | None, sentence: str) -> str:
    """With the number of its entry, where one was written: what is that way already needs none."""
    return f"entry {answer['entry']}: {sentence}" if answer and answer["entry"] else sentence


def _add_removal(parser: Parser) -> None:
    _add_project(parser)
    parser.add_argument("user", metavar="USER", help="a user, by name or number")
    add_writing(parser, reason="none")


def _remove_user(desk: Desk, options: Namespace) -> int:
    project, uid = the_project(desk, options.project), uid_of(options.user, "USER")
    question = f"Take {user_name(uid)} out of {project['account']}?"
    answer = post(desk, Posting("DELETE", f"/project/{project['id']}/member/{uid}", None, question))
    return tell(desk, "fairbank.member/1", answer, _numbered(answer, f"{user_name(uid)} is not in {project['account']} any more"))


COMMAND = Noun(
    "projects and their members",
    {
        "list": Command(
            "the projects that you may see",
            ("fairbank project list", "fairbank project list -g chem", "fairbank project list --json"),
            _add_filters,
            _list,
        ),
        "show": Command(
            "one project and its members",
            ("fairbank project show chem_qmc", "fairbank project show 12", "fairbank project show chem_qmc --json"),
            _add_project,
            _show,
        ),
        "create": Command(
            "enter a Unix group that is to have credit; for staff",
            (
                "fairbank project create chem_qmc",
                "fairbank project create chem_qmc --gid 5012 -A chem --parent chemistry",
                "fairbank project create chem_qmc --dry-run",
            ),
            _add_create,
            _create,
        ),
        "set": Command(
            "change a project's names or its parent, or bring it back; for staff",
            (
                "fairbank project set chem_qmc --parent chemistry",
                "fairbank project set 12 --group qmc --gid 5012",
                "fairbank project set 12 --restore --dry-run",
            ),
            _add_set,
            _set,
        ),
        "remove": Command(
            "let a project be no more, once its credit and its runs are over; for staff",
            ("fairbank project remove chem_qmc", "fairbank project remove 12 --yes", "fairbank project remove chem_qmc --dry-run"),
            _add_named_removal,
            _remove,
        ),
        "users": Command(
            "the members of a project",
            ("fairbank project users chem_qmc", "fairbank project users 12 -P -n", "fairbank project users chem_qmc --csv"),
            _add_project,
            _show,
        ),
        "add-user": Command(
            "give a user a role; for PI, coordinators, staff",
            (
                "fairbank project add-user chem_qmc ayla",
                "fairbank project add-user chem_qmc jorge --role coordinator",
                "fairbank project add-user chem_qmc 1234 --role pi --dry-run",
            ),
            _add_member,
            _add_user,
        ),
        "remove-user": Command(
            "take a user out; for PI, coordinators, staff",
            (
                "fairbank project remove-user chem_qmc ayla",
                "fairbank project remove-user chem_qmc 1234 --yes",
                "fairbank project remove-user chem_qmc ayla --dry-run",
            ),
            _add_removal,
            _remove_user,
        ),
    },
    usual="list",
)
