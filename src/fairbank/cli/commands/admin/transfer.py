"""Command `fairbank transfer`: move credit between allocations of one resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_writing, number
from fairbank.cli.framework.write import LARGE, WriteRequest, moved, post, tell
from fairbank.core.errors import NotFound
from fairbank.core.units import parse_su

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context, Row
    from fairbank.cli.framework.parser import Parser


def add(parser: Parser) -> None:
    parser.add_argument(
        "source", metavar="FROM", type=number, help="the number of the allocation that gives"
    )
    parser.add_argument(
        "target", metavar="TO", type=number, help="the number of the allocation that takes"
    )
    parser.add_argument(
        "amount", metavar="AMOUNT", help="SU: 100, 12.5, 20k, 1.5M; or minutes: 90m"
    )
    add_writing(parser)


def run(context: Context, options: Namespace) -> int:
    amount = parse_su(options.amount, field="AMOUNT")
    source, target = (
        _allocation(context, options.source, "FROM"),
        _allocation(context, options.target, "TO"),
    )
    names = [
        f"allocation {row['id']} ({row['account']}/{row['resource']})" for row in (source, target)
    ]
    what = f"transfer of {context.format.su(amount)} SU from {names[0]} to {names[1]}"
    body = {"to": target["id"], "amount": amount, "comment": options.reason}
    question = f"{what}. Go on?" if amount >= LARGE else None
    answer = post(context, WriteRequest("POST", f"/alloc/{source['id']}/transfer", body, question))
    return tell(
        context,
        "fairbank.transfer/1",
        answer,
        moved(context, answer, what, of=f" in allocation {source['id']}"),
    )


def _allocation(context: Context, number: int, field: str) -> Row:
    """Return an allocation. Raises NotFound, naming `field`: the command has two allocations."""
    try:
        return context.one(f"/alloc/{number}")
    except NotFound as missing:
        missing.field = field
        raise


COMMAND = Command(
    "move credit between two allocations of one resource; for staff, and PIs of both",
    (
        'fairbank transfer 1042 1051 500 --reason "joint runs"',
        'fairbank transfer 1042 1051 500 --reason "joint runs" --dry-run',
        'fairbank transfer 1042 1051 2k --reason "joint runs" --yes',
    ),
    add,
    run,
)
