"""Command `fairbank whoami`: the authenticated user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.report.columns import Column, Row, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

COLUMNS = (Column("WHAT", text("what")), Column("IS", text("is")))


def add(parser: Parser) -> None:
    return None


def run(context: Context, options: Namespace) -> int:
    if shown_columns(context, COLUMNS):
        return 0
    me = context.one("/whoami")
    if options.form == "json":
        show(context, Listing("fairbank.whoami/1", COLUMNS, [me]))
    else:
        show(context, Listing("fairbank.whoami/1", COLUMNS, _lines(context, me)))
    return 0


def _lines(context: Context, me: Row) -> list[Row]:
    accounts = (
        {row["id"]: row["account"] for row in context.rows("/project")} if me["roles"] else {}
    )
    staff = "superuser" if me["superuser"] else "admin" if me["admin"] else ""
    lines = [
        ("bank", str(context.settings.address)),
        ("user", f"{me['user'] or '?'} ({me['uid']})"),
        (
            "signed in as",
            f"{user_name(me['actor'])} ({me['actor']})" if me["actor"] != me["uid"] else "",
        ),
        ("staff", staff),
        (
            "roles",
            ", ".join(
                f"{each['role']} of {accounts.get(each['project'], each['project'])}"
                for each in me["roles"]
            ),
        ),
        ("agent of", ", ".join(me["clusters"])),
        ("may", ", ".join(me["scopes"])),
    ]
    return [{"what": what, "is": said} for what, said in lines if said]


COMMAND = Command(
    "show the authenticated user, with roles and permissions",
    ("fairbank whoami", "fairbank whoami --json", "fairbank whoami --as ayla"),
    add,
    run,
)
