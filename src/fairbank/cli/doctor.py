"""`fairbank doctor`: looks for what is wrong with this bank, and says how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.init import add_config
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk

FOUND = 8


def run(desk: Desk, options: Namespace) -> int:
    checks = desk.house.doctor(options.config)
    for check in checks:
        desk.say(plain(f"{'ok' if check.ok else 'x ':<4}{check.what}"))
        if not check.ok and check.remedy:
            desk.say(plain(f"      try: {check.remedy}"))
    return 0 if all(check.ok for check in checks) else FOUND


COMMAND = Command(
    "look for what is wrong with this bank; 8 when something is",
    ("fairbank doctor", "fairbank doctor --config /etc/fairbank/fairbank.toml", "fairbank doctor && echo well"),
    add_config,
    run,
    reads=False,
    asks=False,
)
