"""`fairbank whoami`: who the bank takes you for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.cli.people import user_name
from fairbank.report.columns import Column, Row, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser

COLUMNS = (Column("WHAT", text("what")), Column("IS", text("is")))


def add(parser: Parser) -> None:
    return None


def run(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    me = desk.one("/whoami")
    if options.form == "json":
        show(desk, Listing("fairbank.whoami/1", COLUMNS, [me]))
    else:
        show(desk, Listing("fairbank.whoami/1", COLUMNS, _lines(desk, me)))
    return 0


def _lines(desk: Desk, me: Row) -> list[Row]:
    accounts = {row["id"]: row["account"] for row in desk.rows("/project")} if me["roles"] else {}
    staff = "superuser" if me["superuser"] else "admin" if me["admin"] else ""
    lines = [
        ("bank", str(desk.settings.address)),
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
    "who the bank takes you for, and what you may do",
    ("fairbank whoami", "fairbank whoami --json", "fairbank whoami --as ayla"),
    add,
    run,
)
