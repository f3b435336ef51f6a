"""Command `fairbank deposit`: add credit to an allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_allocation, add_writing
from fairbank.cli.framework.write import LARGE, WriteRequest, moved, post, tell
from fairbank.core.units import parse_su
from fairbank.report.columns import instant_of

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row


def add(parser: Parser) -> None:
    add_allocation(parser)
    parser.add_argument(
        "amount", metavar="AMOUNT", help="SU: 100, 12.5, 20k, 1.5M; or minutes: 90m"
    )
    add_writing(parser)


def run(context: Context, options: Namespace) -> int:
    return change(context, options, "deposit", "into", 1)


def change(context: Context, options: Namespace, verb: str, direction: str, sign: int) -> int:
    """Post a deposit, or with `sign` -1 a withdrawal."""
    amount = parse_su(options.amount, field="AMOUNT")
    row = context.one(f"/alloc/{options.allocation}")
    what = (
        f"{verb} of {context.format.su(amount)} SU {direction} allocation {row['id']}"
        f" ({row['account']}/{row['resource']})"
    )
    question = (
        f"{what}: available {context.format.left(row['available'])} ->"
        f" {context.format.left(row['available'] + sign * amount)}. Go on?"
    )
    answer = post(
        context,
        WriteRequest(
            "POST",
            f"/alloc/{row['id']}/{verb}",
            {"amount": amount, "comment": options.reason},
            question if sign < 0 or amount >= LARGE else None,
        ),
    )
    warnings = [
        line
        for line in [_asleep(context, row)]
        if line and sign > 0 and (answer or options.dry_run)
    ]
    return tell(context, f"fairbank.{verb}/1", answer, moved(context, answer, what), warnings)


def _asleep(context: Context, row: Row) -> str | None:
    """Return a warning if the allocation cannot be used, and the remedy.

    Staff may deposit all the same: to cover a late charge, or before they reopen it.
    """
    name = f"! allocation {row['id']}"
    if row["state"] == "frozen":
        return (
            f"{name} is frozen: nobody can draw on this credit before fairbank alloc thaw"
            f" {row['id']}"
        )
    if row["state"] == "ended":
        ended = context.format.day(instant_of(row["end"]))
        return (
            f"{name} ended {ended}: nobody can draw on this credit before fairbank alloc reopen"
            f" {row['id']} --end"
        )
    return None


COMMAND = Command(
    "put credit into an allocation; for staff",
    (
        'fairbank deposit 1042 20k --reason "committee 2026-11"',
        'fairbank deposit 1042 20k --reason "committee 2026-11" --dry-run',
        'fairbank deposit 1042 90m --reason "correction" --idempotency-key corr-17',
    ),
    add,
    run,
)
