"""Command `fairbank replay`: run a recorded workload through a bank on the trace's clock."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import FOUND
from fairbank.cli.framework.options import count, file_read
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.report.columns import UNITS, Column, Summand, day, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row
    from fairbank.service.simulation.replay_result import ReplayResult

PERIODS_MAX = 1_000

COLUMNS = (
    Column("PROJECT", text("account")),
    Column("RESOURCE", text("resource")),
    Column("START", day("start")),
    Column("END", day("end")),
    Column("GRANTED", Summand("granted", "granted", "used"), right=True),
    Column("USED", Summand("used", "granted", "used"), right=True),
    Column("HELD", Summand("held", "granted", "used"), right=True, drop=1),
    Column("AVAILABLE", Summand("available", "granted", "used"), right=True),
)


def add(parser: Parser) -> None:
    parser.add_argument(
        "trace",
        metavar="FILE",
        type=file_read,
        help="a trace in the Standard Workload Format, compressed or not",
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        default="memory:",
        help="memory: (usual), sqlite:///FILE, postgresql://HOST/DATABASE",
    )
    parser.add_argument(
        "--grant",
        metavar="PERCENT",
        type=count,
        default=90,
        help="of what each project really used (default: 90)",
    )
    parser.add_argument(
        "--periods",
        metavar="N",
        type=_periods,
        default=1,
        help="allocations one after the other (default: 1)",
    )
    parser.add_argument(
        "--days", metavar="N", type=_days, help="how long they are together (default: as the trace)"
    )
    parser.add_argument(
        "--by",
        choices=("group", "user"),
        help="who is a project (default: groups where the trace names any)",
    )
    parser.add_argument(
        "--record-overruns",
        action="store_true",
        help="charge usage beyond the credit too, instead of writing it off",
    )
    add_progress(parser)


def _periods(text: str) -> int:
    number = count(text)
    if not 1 <= number <= PERIODS_MAX:
        raise ArgumentTypeError(f"{number} is not from 1 to {PERIODS_MAX}")
    return number


def _days(text: str) -> int:
    number = count(text)
    if number < 1:
        raise ArgumentTypeError("a period has at least 1 day")
    return number


def run(context: Context, options: Namespace) -> int:
    if shown_columns(context, COLUMNS):
        return 0
    done = replay_trace(options, options.trace, options.store)
    tell(context, done)
    return 0 if all(check.holds_true for check in done.checks) else FOUND


def replay_trace(
    options: Namespace, trace: str, store: str, *, cluster: str = "trace"
) -> ReplayResult:
    """Run a recorded workload through a new bank, with a progress bar for each stage.

    Args:
        options: those of this command.
        trace: file of the workload.
        store: URL of the store, which is made.
        cluster: name of the cluster in the bank.
    """
    import os
    from functools import partial
    from pathlib import Path

    from fairbank.bank.policy import Overrun, Policy
    from fairbank.service.ledger import Ledger
    from fairbank.service.simulation.replay import ReplayPlan, replay
    from fairbank.service.simulation.workloads import open_trace
    from fairbank.simulator.engine.bank_replay import Payer
    from fairbank.store.factory import open_store
    from fairbank.store.migration import migrate

    path = Path(trace)
    plan = ReplayPlan(
        cluster=cluster,
        percent=options.grant,
        periods=options.periods,
        days=options.days,
        payer=Payer(options.by) if options.by else None,
        actor=os.getuid(),
    )
    overrun = Overrun.RECORD if options.record_overruns else Overrun.WRITE_OFF
    with Stages(options) as progress:
        with open_trace(path):  # a bad trace is refused before the store is made
            migrate(store)
        opened = open_store(store)
        try:
            return replay(
                Ledger(opened, Policy(overrun=overrun)), partial(open_trace, path), plan, progress
            )
        finally:
            opened.close()


def tell(context: Context, done: ReplayResult) -> None:
    """Print figures, balances and invariants."""
    figures = figures_of(context, done)
    summary = {name: value for name, value, _ in figures}
    checks = [
        {"what": each.what, "held": each.holds_true, "figures": each.figures}
        for each in done.checks
    ]
    plain_form = context.options.form is None
    if plain_form:
        for name, _, said in figures:
            context.say(f"{name.replace('_', ' '):<18}{said}")
        context.say()
    more = {"summary": summary, "checks": checks}
    show(
        context,
        Listing(
            "fairbank.replay/1",
            COLUMNS,
            [_row(each) for each in done.balances],
            more=more,
            caption=f"unit {UNITS[context.format.units]}",
        ),
    )
    if plain_form:
        context.say()
        for check in done.checks:
            context.say(f"{'ok' if check.holds_true else 'x '}  {check.what}: {check.figures}")


def figures_of(context: Context, done: ReplayResult) -> list[tuple[str, object, str]]:
    """Return name, value and text of each figure."""
    demand = done.demand
    skipped = demand.never_ran + demand.without_size
    refused = sum(done.refusals.values())
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in sorted(done.refusals.items()))
    rate = done.operations / done.seconds if done.seconds else 0.0
    return [
        (
            "jobs",
            demand.jobs,
            f"{demand.jobs:,}"
            + (f", of which {skipped:,} never ran or have no size" if skipped else ""),
        ),
        ("holds", done.holds, f"{done.holds:,}"),
        ("charges", done.charges, f"{done.charges:,}"),
        ("releases", done.releases, f"{done.releases:,}"),
        ("refusals", done.refusals, f"{refused:,}" + (f": {reasons}" if refused else "")),
        (
            "held_at_the_peak",
            done.held_peak,
            f"{context.format.su(done.held_peak)} {UNITS[context.format.units]}",
        ),
        (
            "written_off",
            done.written_off,
            f"{context.format.su(done.written_off)} {UNITS[context.format.units]}",
        ),
        (
            "operations",
            done.operations,
            f"{done.operations:,} in {done.seconds:.2f} s, {rate:,.0f} operations/s",
        ),
        (
            "fingerprint",
            done.fingerprint,
            f"{done.fingerprint}   (equal final balances have equal ones)",
        ),
    ]


def _row(balance: object) -> Row:
    names = {"deposited": "granted", "charged": "used"}
    fields = ("account", "resource", "start", "end", "deposited", "charged", "held", "available")
    return {names.get(name, name): getattr(balance, name) for name in fields}


COMMAND = Command(
    "run a recorded workload through a bank: starts are holds, ends are charges",
    (
        (
            "fairbank replay month.swf.gz                            in memory, each project"
            " granted 90% of its use"
        ),
        (
            "fairbank replay month.swf --grant 100 --periods 4       four allocations one after the"
            " other"
        ),
        "fairbank replay month.swf --store sqlite:///trial.sqlite",
    ),
    add,
    run,
    asks=False,
)
