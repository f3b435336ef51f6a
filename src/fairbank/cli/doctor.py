"""`fairbank doctor`: looks for what is wrong with this bank, and says how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.init import add_config
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk

FOUND = 8
COLUMNS = (
    Column("OK", lambda row, look: "ok" if row["ok"] else "x"),
    Column("CHECK", text("what")),
    Column("TRY", text("remedy"), drop=1),
)


def run(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    checks = desk.house.doctor(options.config)
    if options.form or options.format:
        rows = [{"what": each.what, "ok": each.ok, "remedy": None if each.ok else each.remedy} for each in checks]
        show(desk, Listing("fairbank.check/1", COLUMNS, rows))
    else:
        for check in checks:
            desk.say(plain(f"{'ok' if check.ok else 'x ':<4}{check.what}"))
            if not check.ok and check.remedy:
                desk.say(plain(f"      try: {check.remedy}"))
    return 0 if all(check.ok for check in checks) else FOUND


COMMAND = Command(
    "look for what is wrong with this bank; 8 when something is",
    ("fairbank doctor", "fairbank doctor --config /etc/fairbank/fairbank.toml", "fairbank doctor --json"),
    add_config,
    run,
    asks=False,
)
