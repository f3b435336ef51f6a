"""Common options of the commands on recorded workloads: trace, policies, machine, credit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.options import add_option, at_least_one, count, file_read
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
    about = (
        "a trace in the Standard Workload Format, or the output of sacct -P; "
        "plain or compressed by gzip; - for standard input"
    )
    add_option(parser, "trace FILE", about, type=file_read, nargs="?" if optional else None)


def add_processors(parser: Parser | _ArgumentGroup) -> None:
    """Add --procs."""
    about = "processors of the machine (default: MaxProcs of the trace)"
    add_option(parser, "--procs N", about, type=at_least_one)


def add_shares(parser: Parser | _ArgumentGroup, by: str) -> None:
    """Add --shares and --by; `by` is the help of the latter."""
    about = "lines `account,shares`: how much is delivered to whom beyond the shares"
    add_option(parser, "--shares FILE", about)
    add_option(parser, "--by", by, choices=("user", "group"))


def add_budget(parser: Parser) -> None:
    """Add the options for granted credit."""
    group = parser.add_argument_group("With the bank in the loop")
    about = "grant each payer this part of what its jobs use; a job without credit does not run"
    add_option(group, "--grant PERCENT", about, type=count)
    about = "grant it in N consecutive allocations (default: 1)"
    add_option(group, "--periods N", about, type=at_least_one)
    about = "start the allocations of each payer at a different time"
    add_option(group, "--staggered", about)
    about = (
        "jobs without credit: refuse them, or run them without charge after all paid jobs "
        "(default: refuse)"
    )
    add_option(group, "--unpaid", about, choices=("refuse", "last"))


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
