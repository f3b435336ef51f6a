"""Fair Tree as slurmctld computes it, one association after the other, in fractions rounded as an
x86-64 rounds long doubles.
"""

from __future__ import annotations

from fractions import Fraction

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.tree import Tree

NOTHING = 4_294_967_294  # no level
FOREVER = 10**9_000  # what slurmctld takes for infinite


def to_64_bits(value: Fraction) -> Fraction:
    """Return the nearest number with 64 significant bits; the even one of two that are equally
    near.
    """
    if not value:
        return value
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - 64
    while value / Fraction(2) ** exponent >= 2**64:
        exponent += 1
    while value / Fraction(2) ** exponent < 2**63:
        exponent -= 1
    return round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent


class Visit:
    """Result: `ranks` of users by row."""

    def __init__(self, tree: Tree, usage: list[int]) -> None:
        self.tree, self.usage = tree, usage
        self.above = [self._stands_on(at) for at in range(len(usage))]
        self.taken = self.turn = int(tree.is_user.sum())
        self.ranks: dict[int, int] = {}
        self._visit(tree.root, tied=False)

    def level(self, at: int) -> Fraction:
        siblings = [row for row, above in enumerate(self.above) if above == self.above[at]]
        if self.tree.shares[at] == ON_PARENT:
            return Fraction(FOREVER if self.tree.is_user[at] else NOTHING)
        all_shares = sum(
            int(self.tree.shares[row]) for row in siblings if self.tree.shares[row] != ON_PARENT
        )
        if not self.tree.shares[at]:
            return Fraction(0)
        if not self.usage[at]:
            return Fraction(FOREVER)
        used = to_64_bits(Fraction(self.usage[at], self.usage[self.above[at]]))
        return to_64_bits(Fraction(int(self.tree.shares[at]) / all_shares) / used)

    def _visit(self, account: int, *, tied: bool) -> None:
        below = [(self.level(row), row) for row, above in enumerate(self.above) if above == account]
        below.sort(key=lambda item: (-item[0], not self.tree.is_user[item[1]]))
        before = Fraction(NOTHING)
        for number, (level, row) in enumerate(below):
            tied = (tied and not number) or level == before
            if self.tree.is_user[row]:
                if not tied:
                    self.taken = self.turn
                self.ranks[row] = self.taken
                self.turn -= 1
            else:
                self._visit(row, tied=tied)
            before = level

    def _stands_on(self, at: int) -> int:
        above = int(self.tree.parent[at])
        while above > 0 and self.tree.shares[above] == ON_PARENT:
            above = int(self.tree.parent[above])
        return above
