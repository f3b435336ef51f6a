"""Shares and prices of a centre that a file describes (cli.composed.Composition)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fairbank.core.errors import Malformed, Unknown
from fairbank.priority.fairshare.holdings import read_holdings
from fairbank.priority.fairshare.site_shares import raw_shares, shares
from fairbank.report.composition import AccountComposition, PartitionCharge


class Composition(NamedTuple):
    reference: str
    shares: Sequence[AccountComposition]
    charges: Sequence[PartitionCharge]


def composed(file: str) -> Composition:
    """Raises Unknown for a file that cannot be read, Malformed with the place in it for what cannot be."""
    centre = read_holdings(_read(Path(file)))
    parts = shares(centre.held)
    whole = raw_shares(parts)
    return Composition(
        centre.reference,
        [
            AccountComposition(name, part.gratis, part.lab, part.communal, whole[name])
            for name, part in parts.items()
        ],
        [
            PartitionCharge(name, weights["cpu"], weights["mem"])
            for name, weights in centre.charges.items()
        ],
    )


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise Unknown(
            f"cannot read {path}: {error.strerror}",
            field="file",
            remedy="name a file that describes a centre",
        ) from error
    except UnicodeDecodeError as bad:
        raise Malformed(
            f"{path} is no text: {bad.reason} at byte {bad.start}",
            field="file",
            remedy="write it as UTF-8",
        ) from bad
