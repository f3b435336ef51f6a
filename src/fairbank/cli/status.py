"""`fairbank status`: whether the bank answers, and how fast."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fairbank.cli.command import Command

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser


def add(parser: Parser) -> None:
    return None


def run(desk: Desk, options: Namespace) -> int:
    began = time.monotonic()
    desk.client.get("/health")
    spent = (time.monotonic() - began) * 1000
    desk.say(f"bank ok at {desk.settings.address}   answered in {spent:.0f} ms")
    return 0


COMMAND = Command(
    "whether the bank answers; exit code 6 when it does not",
    ("fairbank status", "fairbank status -q && echo up", "fairbank status --server http://bank:8080"),
    add,
    run,
    reads=False,
)
