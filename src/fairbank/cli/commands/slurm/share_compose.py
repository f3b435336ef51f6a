"""Command `fairbank share compose`: shares and prices from the ownership of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.report.cells import plain
from fairbank.report.composition import (
    CHARGES,
    SHARES,
    AccountComposition,
    PartitionCharge,
    charge_rows,
    share_rows,
    total_row,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.priority.fairshare.site_shares import NodeHoldings


def _add(parser: Parser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="nodes, partitions, accounts, and who bought what (TOML)"
    )
    parser.add_argument(
        "--weights",
        action="store_true",
        help="what each partition charges instead, as TRESBillingWeights",
    )


def _run(context: Context, options: Namespace) -> int:
    if shown_columns(context, CHARGES if options.weights else SHARES):
        return 0
    from fairbank.priority.fairshare.site_shares import read_holdings

    site = read_holdings(_read(options.file))
    show(context, _weights(site) if options.weights else _shares(site))
    return 0


def _shares(site: NodeHoldings) -> Listing:
    from fairbank.priority.fairshare.site_shares import raw_shares, shares

    parts = shares(site.held)
    whole = raw_shares(parts)
    rows = [
        AccountComposition(name, part.gratis, part.lab, part.communal, whole[name])
        for name, part in parts.items()
    ]
    note = (
        f"Counted in cores of the reference chip, {plain(site.reference)}. "
        "To set one: sacctmgr modify account NAME set fairshare=SHARES"
    )
    return Listing(
        "fairbank.composition/1", SHARES, share_rows(rows), total=total_row(rows), notes=[note]
    )


def _weights(site: NodeHoldings) -> Listing:
    charges = [
        PartitionCharge(name, weights["cpu"], weights["mem"])
        for name, weights in site.charges.items()
    ]
    return Listing(
        "fairbank.weights/1",
        CHARGES,
        charge_rows(charges),
        empty="There is no partition in the file.",
    )


def _read(path: str) -> str:
    """Return the text of the file. Raises NotFound, InvalidInput."""
    try:
        with open(path, "rb") as file:
            return file.read().decode()
    except OSError as error:
        raise NotFound(
            f"cannot read {path}: {error.strerror}",
            field="file",
            remedy="name a file that describes a centre",
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is no text: {error.reason} at byte {error.start}",
            field="file",
            remedy="write it as UTF-8",
        ) from error


COMPOSE = Command(
    "compute shares from public nodes, nodes of labs and shared purchases",
    (
        "fairbank share compose shares.toml",
        "fairbank share compose shares.toml --weights     what each partition charges",
        "fairbank share compose shares.toml --parsable",
    ),
    _add,
    _run,
    asks=False,
)
