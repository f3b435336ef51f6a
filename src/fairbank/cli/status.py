"""`fairbank status`: whether the bank answers, and how fast."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.options import count
from fairbank.cli.output import Listing, show, shown_columns, watched
from fairbank.core.errors import Unreachable
from fairbank.report.columns import Column, text
from fairbank.rest.client import Client

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser


COLUMNS = (
    Column("SERVER", text("server")),
    Column("STATUS", text("status")),
    Column("MS", text("milliseconds"), right=True),
)
WAIT_SECONDS = 30
AGAIN_SECONDS = 0.1


def add(parser: Parser) -> None:
    about = f"wait until it answers, at most so long (usual: {WAIT_SECONDS})"
    parser.add_argument(
        "--wait", metavar="SECS", nargs="?", type=count, const=WAIT_SECONDS, default=0, help=about
    )


def run(desk: Desk, options: Namespace) -> int:
    return 0 if shown_columns(desk, COLUMNS) else watched(desk, lambda: _show(desk, options))


def _show(desk: Desk, options: Namespace) -> int:
    spent = round(_answered(desk, time.monotonic() + options.wait) * 1000)
    if options.form or options.format:
        show(
            desk,
            Listing(
                "fairbank.status/1",
                COLUMNS,
                [{"server": str(desk.settings.address), "status": "ok", "milliseconds": spent}],
            ),
        )
    else:
        desk.say(f"bank ok at {desk.settings.address}   answered in {spent} ms")
    return 0


def _answered(desk: Desk, deadline: float) -> float:
    """How many seconds the bank took to answer. Until the deadline nobody's answer is no answer yet; then it is Unreachable."""
    client = Client(desk.settings.address)  # open to anybody, so nobody needs to sign in
    while True:
        began = time.monotonic()
        try:
            client.get("/health")
            return time.monotonic() - began
        except Unreachable:
            if time.monotonic() >= deadline:
                raise
        time.sleep(AGAIN_SECONDS)


COMMAND = Command(
    "whether the bank answers; exit code 6 when it does not",
    (
        "fairbank status",
        "fairbank serve & fairbank status --wait",
        "fairbank status --server http://bank:8080",
    ),
    add,
    run,
    watch=True,
)
