"""Command `fairbank share compose`: shares and prices from the ownership of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_option
from fairbank.cli.framework.output import Listing, show
from fairbank.core.errors import NotFound
from fairbank.report.cells import plain
from fairbank.report.columns import Column, decimal, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable
    from fractions import Fraction

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.core.tres import Weights
    from fairbank.priority.fairshare.site_shares import NodeHoldings, ShareSource
    from fairbank.report.columns import Row

SHARES = (
    Column("ACCOUNT", text("account"), min_width=7),
    Column("GRATIS", decimal("gratis", 2), right=True),
    Column("LAB", decimal("lab", 2), right=True),
    Column("COMMUNAL", decimal("communal", 2), right=True),
    Column("SHARES", text("shares"), right=True),
)
CHARGES = (
    Column("PARTITION", text("partition"), min_width=9),
    Column("TRESBILLINGWEIGHTS", text("weights")),
)
DECIMALS = 9
"""Decimals of a weight: enough for any price, fewer than a double has."""
GIB = 1_024
"""MiB in a GiB."""


def _add(parser: Parser) -> None:
    add_option(parser, "file FILE", "nodes, partitions, accounts, and who bought what (TOML)")
    add_option(parser, "--weights", "what each partition charges instead, as TRESBillingWeights")


def _run(context: Context, options: Namespace) -> int:
    from fairbank.priority.fairshare.site_shares import read_holdings

    site = read_holdings(_read(options.file))
    show(context, _weights(site) if options.weights else _shares(site))
    return 0


def _shares(site: NodeHoldings) -> Listing:
    from fairbank.priority.fairshare.site_shares import raw_shares, shares

    parts = shares(site.held)
    whole = raw_shares(parts)
    note = (
        f"Counted in cores of the reference chip, {plain(site.reference)}. "
        "To set one: sacctmgr modify account NAME set fairshare=SHARES"
    )
    return Listing(
        "fairbank.composition/1",
        SHARES,
        [_share_row(name, [part], whole[name]) for name, part in parts.items()],
        totals=[_share_row("TOTAL", parts.values(), sum(whole.values()))],
        notes=[note],
    )


def _share_row(account: str, parts: Iterable[ShareSource], shares: int) -> Row:
    """Return the sums of the parts by source, in cores, and the sum as Slurm's integer."""
    row: dict[str, object] = {"account": account}
    for source in ("gratis", "lab", "communal"):
        row[source] = float(sum(getattr(part, source) for part in parts))
    return {**row, "shares": shares}


def _weights(site: NodeHoldings) -> Listing:
    """Return the weights as slurm.conf writes them: memory per GiB; the file has it per MiB."""
    rows = [
        {"partition": name, "weights": _weights_text(weights)}
        for name, weights in site.charges.items()
    ]
    empty = "There is no partition in the file."
    return Listing("fairbank.weights/1", CHARGES, rows, empty=empty)


def _weights_text(weights: Weights) -> str:
    text = f"CPU={_number(weights['cpu'])},Mem={_number(weights['mem'] * GIB)}G"
    gpu = weights.get("gres/gpu")
    return text if gpu is None else f"{text},GRES/gpu={_number(gpu)}"


def _number(weight: Fraction) -> str:
    return f"{float(weight):.{DECIMALS}f}".rstrip("0").rstrip(".")


def _read(path: str) -> bytes:
    """Return the content of the file. Raises NotFound, InvalidInput."""
    from fairbank.core.settings_file import read_whole

    try:
        with open(path, "rb") as file:
            return read_whole(file, path, field="file")
    except OSError as error:
        raise NotFound(
            f"cannot read {path}: {error.strerror}",
            field="file",
            remedy="name a file that describes a centre",
        ) from error


COMPOSE = Command(
    "compute shares from public nodes, nodes of labs and shared purchases",
    (
        "{} shares.toml",
        "{} shares.toml --weights     what each partition charges",
        "{} shares.toml --parsable",
    ),
    _add,
    _run,
    asks=False,
    columns=lambda options: CHARGES if options.weights else SHARES,
)
