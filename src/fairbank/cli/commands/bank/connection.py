"""Commands `fairbank status` and `fairbank whoami`: response time and authenticated user."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.options import add_nothing, add_option, count
from fairbank.cli.framework.output import Listing, show
from fairbank.core.errors import Unavailable
from fairbank.report.cells import plain
from fairbank.report.columns import Column, Row, text
from fairbank.rest.client import Client

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

STATUS_COLUMNS = (
    Column("SERVER", text("server")),
    Column("STATUS", text("status")),
    Column("MS", text("milliseconds"), right=True),
)
USER_COLUMNS = (Column("WHAT", text("what")), Column("IS", text("is")))
WAIT_SECONDS = 30
AGAIN_SECONDS = 0.1


def _add_status(parser: Parser) -> None:
    about = f"wait until it answers, at most so long (default: {WAIT_SECONDS})"
    add_option(parser, "--wait SECS", about, nargs="?", type=count, const=WAIT_SECONDS, default=0)


def _status(context: Context, options: Namespace) -> int:
    spent = round(_answered(context, time.monotonic() + options.wait) * 1000)
    address = context.settings.address
    if options.form or options.format:
        row = {"server": str(address), "status": "ok", "milliseconds": spent}
        return show(context, Listing("fairbank.status/1", STATUS_COLUMNS, [row]))
    context.bank_is_named = True
    name = f"bank {plain(context.bank)}" if context.bank else "bank"
    context.print_text(f"{name} ok at {address}   answered in {spent} ms")
    return 0


def _answered(context: Context, deadline: float) -> float:
    """Return the seconds until the bank answered. Raises Unavailable after the deadline."""
    settings = context.settings
    # Open to all users, so it needs no authentication.
    client = Client(settings.address, bank_file=settings.bank_file, on_answer=context.keep_source)
    while True:
        began = time.monotonic()
        try:
            client.get("/health")
            return time.monotonic() - began
        except Unavailable:
            if time.monotonic() >= deadline:
                raise
        time.sleep(AGAIN_SECONDS)


STATUS = Command(
    "check that the bank answers; exit code 6 if it does not",
    ("{}", "fairbank serve & {} --wait", "{} --server http://bank:8080"),
    _add_status,
    _status,
    watch=True,
    columns=STATUS_COLUMNS,
)


def _whoami(context: Context, options: Namespace) -> int:
    me = context.one("/whoami")
    context.bank_is_named = True
    rows = [me] if options.form == "json" else _lines(context, me)
    return show(context, Listing("fairbank.whoami/1", USER_COLUMNS, rows))


def _lines(context: Context, me: Row) -> list[Row]:
    accounts = (
        {row["id"]: row["account"] for row in context.rows("/project")} if me["roles"] else {}
    )
    staff = "superuser" if me["superuser"] else "admin" if me["admin"] else ""
    actor = f"{user_name(me['actor'])} ({me['actor']})" if me["actor"] != me["uid"] else ""
    roles = [
        f"{role['role']} of {accounts.get(role['project'], role['project'])}"
        for role in me["roles"]
    ]
    lines = [
        ("bank", f"{context.bank} at {context.settings.address}"),
        ("user", f"{me['user'] or '?'} ({me['uid']})"),
        ("signed in as", actor),
        ("staff", staff),
        ("roles", ", ".join(roles)),
        ("agent of", ", ".join(me["clusters"])),
        ("may", ", ".join(me["scopes"])),
    ]
    return [{"what": what, "is": value} for what, value in lines if value]


WHOAMI = Command(
    "show the authenticated user, with roles and permissions",
    ("{}", "{} --json", "{} --as ayla"),
    add_nothing,
    _whoami,
    columns=USER_COLUMNS,
)
