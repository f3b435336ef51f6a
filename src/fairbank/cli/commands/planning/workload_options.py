"""Common options of the commands on recorded workloads: trace, policies, machine, credit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.options import at_least_one, count, file_read
from fairbank.core.errors import InvalidInput

if TYPE_CHECKING:
    from argparse import Namespace, _ArgumentGroup

    from fairbank.cli.framework.parser import Parser
    from fairbank.simulator.engine.grants import Budget

DEFAULT_POLICY = "easy"
POLICIES = "fifo, fcfs, easy, conservative, slurm, or a file FILE.toml"
PERIODS_MAX = 1_000


def add_trace(parser: Parser, *, optional: bool = False) -> None:
    """Add the trace as the first argument."""
    parser.add_argument(
        "trace",
        metavar="FILE",
        type=file_read,
        nargs="?" if optional else None,
        help=(
            "a trace in the Standard Workload Format, or the output of sacct -P; "
            "compressed or not; - for standard input"
        ),
    )


def add_processors(parser: Parser | _ArgumentGroup) -> None:
    """Add --procs."""
    parser.add_argument(
        "--procs",
        metavar="N",
        type=at_least_one,
        help="processors of the machine (default: MaxProcs of the trace)",
    )


def add_budget(parser: Parser) -> None:
    """Add the options for granted credit."""
    group = parser.add_argument_group("With the bank in the loop")
    group.add_argument(
        "--grant",
        metavar="PERCENT",
        type=count,
        help="grant each payer this part of what its jobs use; a job without credit does not run",
    )
    group.add_argument(
        "--periods",
        metavar="N",
        type=at_least_one,
        help="grant it in N consecutive allocations (default: 1)",
    )
    group.add_argument(
        "--staggered",
        action="store_true",
        help="start the allocations of each payer at a different time",
    )
    group.add_argument(
        "--unpaid",
        choices=("refuse", "last"),
        help=(
            "jobs without credit: refuse them, or run them without charge after all paid jobs "
            "(default: refuse)"
        ),
    )


def budget_of(options: Namespace) -> Budget | None:
    """Return the credit to grant; None without a bank. Raises InvalidInput for unused options."""
    if options.grant is None:
        for name in ("periods", "staggered", "unpaid"):
            if getattr(options, name):
                raise InvalidInput(
                    f"--{name} says how credit is granted, and none is",
                    field=name,
                    remedy="add --grant PERCENT, or leave it out",
                )
        if options.by is not None and options.shares is None:
            raise InvalidInput(
                "--by says whose shares or credit are meant, and there are neither",
                field="by",
                remedy="add --shares FILE or --grant PERCENT, or leave it out",
            )
        return None
    periods = options.periods or 1
    if periods > PERIODS_MAX:
        raise InvalidInput(
            f"{periods} periods are too many",
            field="periods",
            remedy=f"a number from 1 to {PERIODS_MAX}",
        )
    # A simulation without a bank does not pay for these imports.
    from fairbank.simulator.engine.bank_replay import Payer
    from fairbank.simulator.engine.grants import Budget, Unpaid

    payer = None if options.by is None else Payer(options.by)
    unpaid = Unpaid(options.unpaid or "refuse")
    return Budget(options.grant, payer, unpaid, periods, options.staggered)
