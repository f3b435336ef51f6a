"""`fairbank replay`: runs a recorded workload through a bank at the trace's own clock."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.exits import FOUND
from fairbank.cli.options import count, file_read
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.cli.progress import Stages, add_progress
from fairbank.report.columns import UNITS, Column, Summand, day, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.paper import Replayed
    from fairbank.cli.parser import Parser
    from fairbank.report.columns import Row

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
        help="of what each project really used (usual: 90)",
    )
    parser.add_argument(
        "--periods",
        metavar="N",
        type=_periods,
        default=1,
        help="allocations one after the other (usual: 1)",
    )
    parser.add_argument(
        "--days", metavar="N", type=_days, help="how long they are together (usual: as the trace)"
    )
    parser.add_argument(
        "--by",
        choices=("group", "user"),
        help="who is a project (usual: groups where the trace names any)",
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


def run(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    done = replayed(desk, options, options.trace, options.store)
    tell(desk, done)
    return 0 if all(check.held for check in done.checks) else FOUND


def replayed(
    desk: Desk, options: Namespace, trace: str, store: str, *, cluster: str = "trace"
) -> Replayed:
    """The replay itself, with a bar for each of its stages."""
    with Stages(options) as stages:
        return desk.works.paper.replay(
            trace,
            store,
            cluster=cluster,
            percent=options.grant,
            periods=options.periods,
            days=options.days,
            payer=options.by,
            record_overruns=options.record_overruns,
            progress=stages,
        )


def tell(desk: Desk, done: Replayed) -> None:
    """The figures, the balances and the invariants, in the form asked for."""
    figures = figures_of(desk, done)
    summary = {name: value for name, value, _ in figures}
    checks = [
        {"what": each.what, "held": each.held, "figures": each.figures} for each in done.checks
    ]
    plain_form = desk.options.form is None
    if plain_form:
        for name, _, said in figures:
            desk.say(f"{name.replace('_', ' '):<18}{said}")
        desk.say()
    more = {"summary": summary, "checks": checks}
    show(
        desk,
        Listing(
            "fairbank.replay/1",
            COLUMNS,
            [_row(each) for each in done.balances],
            more=more,
            caption=f"unit {UNITS[desk.look.units]}",
        ),
    )
    if plain_form:
        desk.say()
        for check in done.checks:
            desk.say(f"{'ok' if check.held else 'x '}  {check.what}: {check.figures}")


def figures_of(desk: Desk, done: Replayed) -> list[tuple[str, object, str]]:
    """Name, value and how it is said."""
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
            f"{desk.look.su(done.held_peak)} {UNITS[desk.look.units]}",
        ),
        (
            "written_off",
            done.written_off,
            f"{desk.look.su(done.written_off)} {UNITS[desk.look.units]}",
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
        "fairbank replay month.swf.gz                            in memory, each project granted 90% of its use",
        "fairbank replay month.swf --grant 100 --periods 4       four allocations one after the other",
        "fairbank replay month.swf --store sqlite:///trial.sqlite",
    ),
    add,
    run,
    asks=False,
)
