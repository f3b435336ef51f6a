"""Wishes that move credit."""

from __future__ import annotations

from fairbank.bank.wish.base import Wish
from fairbank.core.units import SuMinutes


class Deposit(Wish, frozen=True, kw_only=True, tag="deposit"):
    """Put credit into an allocation."""

    allocation: int
    amount: SuMinutes


class Withdraw(Wish, frozen=True, kw_only=True, tag="withdraw"):
    """Take unused credit out of an allocation; a credit limit is none."""

    allocation: int
    amount: SuMinutes


class Transfer(Wish, frozen=True, kw_only=True, tag="transfer"):
    """Move credit between two allocations of one resource, both active and not over."""

    source: int
    target: int
    amount: SuMinutes
