"""Command `fairbank replay`: run a recorded workload through a bank on the trace's clock."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import FOUND
from fairbank.cli.framework.options import add_option, count, file_read
from fairbank.cli.framework.output import Listing, show
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.report.cells import folded
from fairbank.report.columns import Column, Summand, day, last_day, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.simulator.results.replay_result import ReplayResult

PERIODS_MAX = 1_000

COLUMNS = (
    Column("PROJECT", text("account")),
    Column("RESOURCE", text("resource")),
    Column("START", day("start")),
    Column("END", last_day("end")),
    Column("GRANTED", Summand("granted", "granted", "used"), right=True),
    Column("USED", Summand("used", "granted", "used"), right=True),
    Column("HELD", Summand("held", "granted", "used"), right=True, drop=1),
    Column("REMAINING", Summand("remaining", "granted", "used"), right=True),
)


def add(parser: Parser) -> None:
    about = "a trace in the Standard Workload Format, plain or compressed by gzip"
    add_option(parser, "trace FILE", about, type=file_read)
    about = "sqlite:///FILE, postgresql://HOST/DATABASE or memory: (default: memory:)"
    add_option(parser, "--store URL", about, default="memory:")
    about = "of what each project really used (default: 90)"
    add_option(parser, "--grant PERCENT", about, type=count, default=90)
    about = "allocations one after the other (default: 1)"
    add_option(parser, "--periods N", about, type=_periods, default=1)
    add_option(parser, "--days N", "how long they are together (default: as the trace)", type=_days)
    about = "who is a project (default: groups where the trace names any)"
    add_option(parser, "--by", about, choices=("group", "user"))
    about = "charge usage beyond the credit too, instead of writing it off"
    add_option(parser, "--record-overruns", about)
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
    done = replay_trace(options, options.trace, options.store)
    show_replay(context, done)
    return 0 if all(check.holds_true for check in done.checks) else FOUND


def replay_trace(
    options: Namespace,
    trace: str,
    store: str,
    *,
    cluster: str = "trace",
    gpu_processors: int | None = None,
) -> ReplayResult:
    """Run a recorded workload through a new bank, with a progress bar for each stage.

    Args:
        options: those of this command.
        trace: file of the workload.
        store: URL of the store, which is made.
        cluster: name of the cluster in the bank.
        gpu_processors: the number of processors with one GPU; None if it is unknown.
    """
    import os
    from contextlib import closing
    from functools import partial
    from pathlib import Path

    from fairbank.bank.policy import Overrun, Policy
    from fairbank.service.ledger import Ledger
    from fairbank.service.simulation.replay import replay
    from fairbank.service.simulation.trace_files import open_trace
    from fairbank.simulator.engine.bank_replay import Payer
    from fairbank.simulator.engine.replay_requests import ReplayPlan
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
        gpu_processors=gpu_processors,
    )
    overrun = Overrun.RECORD if options.record_overruns else Overrun.WRITE_OFF
    with Stages(options) as progress:
        with open_trace(path):  # a bad trace is refused before the store is made
            migrate(store)
        with closing(open_store(store)) as opened:
            ledger = Ledger(opened, Policy(overrun=overrun))
            return replay(ledger, partial(open_trace, path), plan, progress)


def show_replay(context: Context, done: ReplayResult) -> None:
    """Print figures, balances and invariants."""
    figures = figures_of(context, done)
    checks = [
        {"what": check.what, "ok": check.holds_true, "figures": check.figures}
        for check in done.checks
    ]
    amounts = _amounts(done)
    resources = [
        {"resource": name} | {figure: of[name] for figure, of in amounts.items()}
        for name in amounts["written_off"]
    ]
    summary = {name: value for name, value, _ in figures if name not in amounts}
    more = {"summary": summary, "resources": resources, "checks": checks}
    plain_form = context.options.form is None
    if plain_form:
        for name, _, value in figures:
            context.print_text(f"{name.replace('_', ' '):<18}{value}")
        context.print_text()
    names = {"deposited": "granted", "charged": "used"}
    rows = [
        {names.get(name, name): value for name, value in balance.items()}
        | {"remaining": balance["available"]}
        for balance in done.balances
    ]
    caption = f"unit {context.format.unit}"
    show(context, Listing("fairbank.replay/2", COLUMNS, rows, caption, more=more))
    if plain_form:
        context.print_text()
        for check in done.checks:
            line = f"{'ok' if check.holds_true else 'x '}  {check.what}: {check.figures}"
            context.print_lines(folded(line, context.width))


def figures_of(context: Context, done: ReplayResult) -> list[tuple[str, object, str]]:
    """Return name, value and text of each figure."""
    demand = done.demand
    skipped = demand.never_ran + demand.without_size
    jobs = f"{demand.jobs:,}" + (
        f", of which {skipped:,} never ran or have no size" if skipped else ""
    )
    refused = sum(done.refusals.values())
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in sorted(done.refusals.items()))
    rate = done.operations / done.seconds if done.seconds else 0.0
    work = f"{done.operations:,} in {done.seconds:.2f} s, {rate:,.0f} operations/s"
    fingerprint = f"{done.fingerprint}   (equal final balances have equal ones)"
    return [
        ("jobs", demand.jobs, jobs),
        ("holds", done.holds, f"{done.holds:,}"),
        ("charges", done.charges, f"{done.charges:,}"),
        ("releases", done.releases, f"{done.releases:,}"),
        ("refusals", done.refusals, f"{refused:,}" + (f": {reasons}" if refused else "")),
        *((figure, of, _in_words(context, of)) for figure, of in _amounts(done).items()),
        ("operations", done.operations, work),
        ("fingerprint", done.fingerprint, fingerprint),
    ]


def _amounts(done: ReplayResult) -> dict[str, dict[str, int]]:
    """Return the figures that are amounts, by resource: SU of two resources are not added."""
    names = sorted({allocation.terms.resource for allocation in done.allocations})
    figures = {"held_at_the_peak": done.held_peak, "written_off": done.written_off}
    return {figure: {name: of.get(name, 0) for name in names} for figure, of in figures.items()}


def _in_words(context: Context, amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{context.format.su_text(su)} of {name}" for name, su in amounts.items())


COMMAND = Command(
    "run a recorded workload through a bank: starts are holds, ends are charges",
    (
        "{} month.swf.gz                            in memory, each project granted 90% of its use",
        "{} month.swf --grant 100 --periods 4       four allocations one after the other",
        "{} month.swf --store sqlite:///trial.sqlite",
    ),
    add,
    run,
    asks=False,
    columns=COLUMNS,
)
