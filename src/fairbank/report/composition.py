"""Composition of shares by account, and charges by partition."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from fairbank.report.columns import Column, Row, Show, text


def _cores(key: str) -> Show:
    return lambda row, look: f"{row[key]:.2f}"


SHARES = (
    Column("ACCOUNT", text("account"), least=7),
    Column("GRATIS", _cores("gratis"), right=True),
    Column("LAB", _cores("lab"), right=True),
    Column("COMMUNAL", _cores("communal"), right=True),
    Column("SHARES", text("shares"), right=True),
)
CHARGES = (
    Column("PARTITION", text("partition"), least=9),
    Column("TRESBILLINGWEIGHTS", text("weights")),
)
DECIMALS = 9
"""Decimals of a weight: enough for any price, fewer than a double has."""
GIB = 1_024
"""MiB in a GiB."""


class AccountComposition(NamedTuple):
    """Shares of an account by source, in cores of the reference chip, and as Slurm's integer."""

    account: str
    gratis: Fraction
    lab: Fraction
    communal: Fraction
    shares: int


class PartitionCharge(NamedTuple):
    """Billing units per core and per MiB."""

    partition: str
    cpu: Fraction
    mem: Fraction


def share_rows(composed: Sequence[AccountComposition]) -> list[Row]:
    return [_share_row(each) for each in composed]


def total_row(composed: Sequence[AccountComposition]) -> Row:
    """Return the sum over all accounts."""
    gratis = sum((each.gratis for each in composed), Fraction(0))
    lab = sum((each.lab for each in composed), Fraction(0))
    communal = sum((each.communal for each in composed), Fraction(0))
    return _share_row(
        AccountComposition("TOTAL", gratis, lab, communal, sum(each.shares for each in composed))
    )


def _share_row(each: AccountComposition) -> Row:
    parts = {"gratis": float(each.gratis), "lab": float(each.lab), "communal": float(each.communal)}
    return {"account": each.account, **parts, "shares": each.shares}


def charge_rows(charged: Sequence[PartitionCharge]) -> list[Row]:
    """Return the weights as slurm.conf writes them; memory per GiB."""
    return [
        {
            "partition": each.partition,
            "weights": f"CPU={_number(each.cpu)},Mem={_number(each.mem * GIB)}G",
        }
        for each in charged
    ]


def _number(weight: Fraction) -> str:
    return f"{float(weight):.{DECIMALS}f}".rstrip("0").rstrip(".")
