"""What each kind of entry does to the sums of its book."""

from __future__ import annotations

from typing import NamedTuple

from fairbank.bank.entry import Kind


class Effect(NamedTuple):
    """What an entry adds to the sums, in multiples of its amount, and whether it closes the hold of its run."""

    deposits: int = 0
    charges: int = 0
    holds: int = 0
    closes: bool = False


OF_CREDIT = {
    Kind.DEPOSIT: Effect(deposits=1),
    Kind.TRANSFER_IN: Effect(deposits=1),
    Kind.WITHDRAW: Effect(deposits=-1),
    Kind.TRANSFER_OUT: Effect(deposits=-1),
}
OF_RUNS = {
    Kind.HOLD: Effect(holds=1),
    Kind.ADJUST: Effect(holds=1),
    Kind.CHARGE: Effect(charges=1, closes=True),
    Kind.RELEASE: Effect(closes=True),
    Kind.LAPSE: Effect(closes=True),
    Kind.REFUND: Effect(charges=-1),
    Kind.RECHARGE: Effect(charges=1),
}
NONE = Effect()
