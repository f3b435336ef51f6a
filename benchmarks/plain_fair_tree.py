"""Fair Tree in plain Python: objects, recursion, doubles. Baseline of
`priority.fairshare.fair_tree`.
"""

from __future__ import annotations

import math

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.tree import Tree


class Node:
    """Association with its children and its columns of sshare."""

    __slots__ = (
        "below",
        "effective_usage",
        "factor",
        "is_user",
        "level",
        "norm_shares",
        "norm_usage",
        "raw_shares",
        "shares_below",
        "usage",
    )

    def __init__(self, raw_shares: int, *, is_user: bool) -> None:
        self.raw_shares, self.is_user = raw_shares, is_user
        self.below: list[Node] = []
        self.shares_below = 0
        self.usage = self.norm_shares = self.norm_usage = self.effective_usage = self.factor = (
            self.level
        ) = 0.0


class PlainFairTree:
    """Tree of nodes, built once; `rank` computes the columns from usage."""

    def __init__(self, tree: Tree) -> None:
        self.nodes = [
            Node(int(shares), is_user=bool(is_user))
            for shares, is_user in zip(tree.shares, tree.is_user, strict=True)
        ]
        for node, above in zip(self.nodes, tree.shape.above.tolist(), strict=True):
            if above >= 0:
                account = self.nodes[above]
                account.below.append(node)
                account.shares_below += node.raw_shares if node.raw_shares != ON_PARENT else 0
        self.root = self.nodes[tree.root]
        self.users = sum(node.is_user for node in self.nodes)

    def rank(self, usage: list[float]) -> list[float]:
        """Return the fair-share factor of each node; the nodes keep the other columns."""
        for node, used in zip(self.nodes, usage, strict=True):
            node.usage = used
        self._taken = self._turn = self.users
        self._visit(self.root, tied=False)
        return [node.factor for node in self.nodes]

    def _visit(self, account: Node, *, tied: bool) -> None:
        for node in account.below:
            self._measure(node, account)
        first, before = True, -1.0
        for node in sorted(account.below, key=_best_first):
            tied = (tied and first) or node.level == before
            if node.is_user:
                if not tied:
                    self._taken = self._turn
                node.factor = self._taken / self.users
                self._turn -= 1
            else:
                self._visit(node, tied=tied)
            first, before = False, node.level

    def _measure(self, node: Node, account: Node) -> None:
        node.effective_usage = node.usage / account.usage if account.usage else 0.0
        node.norm_usage = node.usage / self.root.usage if self.root.usage else 0.0
        if node.raw_shares == ON_PARENT:
            node.norm_shares = account.norm_shares
            node.level = math.inf if node.is_user else -1.0
            return
        node.norm_shares = node.raw_shares / account.shares_below if account.shares_below else 0.0
        if node.norm_shares == 0:
            node.level = 0.0
        else:
            node.level = (
                node.norm_shares / node.effective_usage if node.effective_usage else math.inf
            )


def _best_first(node: Node) -> tuple[float, bool]:
    return (-node.level, not node.is_user)
