"""Command `fairbank status`: response time of the bank."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import count
from fairbank.cli.framework.output import Listing, show, shown_columns, watched
from fairbank.core.errors import Unavailable
from fairbank.report.columns import Column, text
from fairbank.rest.client import Client

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


COLUMNS = (
    Column("SERVER", text("server")),
    Column("STATUS", text("status")),
    Column("MS", text("milliseconds"), right=True),
)
WAIT_SECONDS = 30
AGAIN_SECONDS = 0.1


def add(parser: Parser) -> None:
    about = f"wait until it answers, at most so long (default: {WAIT_SECONDS})"
    parser.add_argument(
        "--wait", metavar="SECS", nargs="?", type=count, const=WAIT_SECONDS, default=0, help=about
    )


def run(context: Context, options: Namespace) -> int:
    return (
        0 if shown_columns(context, COLUMNS) else watched(context, lambda: _show(context, options))
    )


def _show(context: Context, options: Namespace) -> int:
    spent = round(_answered(context, time.monotonic() + options.wait) * 1000)
    if options.form or options.format:
        show(
            context,
            Listing(
                "fairbank.status/1",
                COLUMNS,
                [{"server": str(context.settings.address), "status": "ok", "milliseconds": spent}],
            ),
        )
    else:
        context.say(f"bank ok at {context.settings.address}   answered in {spent} ms")
    return 0


def _answered(context: Context, deadline: float) -> float:
    """Return the seconds until the bank answered. Raises Unavailable after the deadline."""
    client = Client(context.settings.address)  # open to anybody, so nobody needs to sign in
    while True:
        began = time.monotonic()
        try:
            client.get("/health")
            return time.monotonic() - began
        except Unavailable:
            if time.monotonic() >= deadline:
                raise
        time.sleep(AGAIN_SECONDS)


COMMAND = Command(
    "check that the bank answers; exit code 6 if it does not",
    (
        "fairbank status",
        "fairbank serve & fairbank status --wait",
        "fairbank status --server http://bank:8080",
    ),
    add,
    run,
    watch=True,
)
