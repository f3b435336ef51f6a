"""Command `fairbank withdraw`: take credit out of an allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.deposit import add, change
from fairbank.cli.framework.command import Command

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context


def run(context: Context, options: Namespace) -> int:
    return change(context, options, "withdraw", "out of", -1)


COMMAND = Command(
    "take credit out of an allocation; for staff",
    (
        'fairbank withdraw 1042 500 --reason "moved to next year"',
        'fairbank withdraw 1042 500 --reason "moved to next year" --dry-run',
        'fairbank withdraw 1042 30m --reason "correction"',
    ),
    add,
    run,
)
