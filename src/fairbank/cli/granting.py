"""What a simulation's bank grants: the options that `simulate` and `whatif` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairbank.cli.options import at_least_one, count
from fairbank.core.errors import Malformed

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.parser import Parser

PERIODS_MAX = 1_000


class Granting(NamedTuple):
    """`percent` of what each payer's jobs use, in `periods` allocations one after the other, those of one payer at other times than those
    of the next if `staggered`. `unpaid`: "refuse" a job that cannot be paid, or let it go "last". `by`: who pays, user or group; None
    leaves it to the trace."""

    percent: int
    periods: int
    staggered: bool
    unpaid: str
    by: str | None


def add_granting(parser: Parser) -> None:
    group = parser.add_argument_group("With the bank in the loop")
    group.add_argument(
        "--grant",
        metavar="PERCENT",
        type=count,
        help="grant each payer so much of what its jobs use; a job is paid or not run",
    )
    group.add_argument(
        "--periods",
        metavar="N",
        type=at_least_one,
        help="in so many allocations one after the other (usual: 1)",
    )
    group.add_argument(
        "--staggered",
        action="store_true",
        help="those of one payer begin at other times than those of the next",
    )
    group.add_argument(
        "--unpaid",
        choices=("refuse", "last"),
        help="what nobody can pay: refuse it (usual), or run it for nothing behind all who pay",
    )


def granting_of(options: Namespace) -> Granting | None:
    """None without a bank. Raises Malformed for options that would change nothing."""
    if options.grant is None:
        for name in ("periods", "staggered", "unpaid"):
            if getattr(options, name):
                raise Malformed(
                    f"--{name} says how credit is granted, and none is",
                    field=name,
                    remedy="add --grant PERCENT, or leave it out",
                )
        if options.by is not None and options.shares is None:
            raise Malformed(
                "--by says whose shares or credit are meant, and there are neither",
                field="by",
                remedy="add --shares FILE or --grant PERCENT, or leave it out",
            )
        return None
    if (options.periods or 1) > PERIODS_MAX:
        raise Malformed(
            f"{options.periods} periods are too many",
            field="periods",
            remedy=f"a number from 1 to {PERIODS_MAX}",
        )
    return Granting(
        options.grant,
        options.periods or 1,
        options.staggered,
        options.unpaid or "refuse",
        options.by,
    )
