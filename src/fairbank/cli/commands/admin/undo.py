"""Command `fairbank undo`: reverse an entry by another entry. Nothing is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.options import add_writing, number
from fairbank.cli.framework.write import WriteRequest, planned_entries, post, tell

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row


def add(parser: Parser) -> None:
    parser.add_argument(
        "entry",
        metavar="ENTRY",
        type=number,
        help="the number that the command printed, or of a statement's line",
    )
    add_writing(parser)


def run(context: Context, options: Namespace) -> int:
    request = WriteRequest("POST", f"/entry/{options.entry}/undo", {"comment": options.reason})
    told = [] if options.dry_run else planned_entries(context, request)
    what = (
        f"undo of entry {options.entry}:"
        f" {' and '.join(_said(context, row) for row in told) or 'as before'}"
    )
    answer = post(context, request._replace(question=f"{what}. Go on?"))
    if answer is None:
        return tell(context, "fairbank.undo/1", None, "")
    left = (
        ""
        if answer["allocation"] is None
        else f"; available {context.format.left(answer['available'])} SU"
    )
    return tell(context, "fairbank.undo/1", answer, f"entry {answer['entry']}: {what}{left}")


def _said(context: Context, row: Row) -> str:
    """Return a short description of an entry."""
    name, details = (
        f"allocation {row['allocation']} ({row['account']}/{row['resource']})",
        row["details"],
    )
    match row["kind"]:
        case "terms":
            said = ", ".join(
                f"{key.replace('_', ' ')} {value}"
                for key, value in details.items()
                if key != "undoes"
            )
            return f"{name} back to {said or 'what it was already'}"
        case "cap":
            unit = "" if details["cap"] == "none" else " SU"
            return (
                f"the cap of {user_name(row['owner_uid'])} in {name} back to {details['cap']}{unit}"
            )
        case "member":
            return (
                f"the role of {user_name(row['owner_uid'])} in {row['account']} back to"
                f" {details['role']}"
            )
        case _:
            job = f" of job {row['job_id']}" if row["job_id"] is not None else ""
            return f"{row['kind']} of {context.format.su(row['amount'])} SU{job}, {name}"


COMMAND = Command(
    "reverse an entry by a new one: credit, a refund, terms, a cap, a role",
    (
        'fairbank undo 9913533 --reason "wrong allocation"',
        'fairbank undo 9913533 --reason "wrong allocation" --dry-run',
        'fairbank undo 9913533 --reason "wrong allocation" --yes',
    ),
    add,
    run,
)
