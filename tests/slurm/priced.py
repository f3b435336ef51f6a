"""A bank that prices the partitions of the lab as its Slurm bills them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.server import FairbankServer, made

WEIGHTS = {
    "cpu": ("cpu", "CPU=1.0,Mem=0.5G"),
    "gpu": ("gpu", "CPU=1.0,Mem=0.09375G,GRES/gpu=12.0"),
    "gpu-t4": ("gpu", "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0"),
}

PRICES = "".join(
    f'[clusters.lab.partitions."{name}"]\nresource = "{resource}"\nweights = "{weights}"\n' for name, (resource, weights) in WEIGHTS.items()
)


@contextmanager
def priced(prices: str = PRICES) -> Iterator[FairbankServer]:
    """A running bank with these prices and no others."""
    with made() as bank:
        bank.config.write_text(bank.config.read_text().partition("[clusters.local]")[0] + prices)
        bank.start()
        yield bank
