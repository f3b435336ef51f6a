"""`fairbank share compose`: shares and prices made of who has a part in which nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.report.cells import plain
from fairbank.report.composition import CHARGES, SHARES, charge_rows, share_rows, total_row

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.composed import Composition
    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser


def _add(parser: Parser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="nodes, partitions, accounts, and who bought what (TOML)"
    )
    parser.add_argument(
        "--weights",
        action="store_true",
        help="what each partition charges instead, as TRESBillingWeights",
    )


def _run(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, CHARGES if options.weights else SHARES):
        return 0
    found = desk.works.composed(options.file)
    show(desk, _charges(found) if options.weights else _shares(found))
    return 0


def _shares(found: Composition) -> Listing:
    note = f"Counted in cores of the reference chip, {plain(found.reference)}. To set one: sacctmgr modify account NAME set fairshare=SHARES"
    return Listing(
        "fairbank.composition/1",
        SHARES,
        share_rows(found.shares),
        total=total_row(found.shares),
        notes=[note],
    )


def _charges(found: Composition) -> Listing:
    return Listing(
        "fairbank.weights/1",
        CHARGES,
        charge_rows(found.charges),
        empty="There is no partition in the file.",
    )


COMPOSE = Command(
    "shares made of public nodes, of those a lab bought and of those bought in common",
    (
        "fairbank share compose shares.toml",
        "fairbank share compose shares.toml --weights     what each partition charges",
        "fairbank share compose shares.toml --parsable",
    ),
    _add,
    _run,
    asks=False,
)
