"""Trees as indented text: `account shares`, `user shares usage`; below an account, its users and
accounts. The root is left out.
"""

from __future__ import annotations

from typing import NamedTuple

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.columns import Longs
from fairbank.priority.fairshare.tree import ShareAssociation, Tree, planted, summed


class TreeWithUsage(NamedTuple):
    """Tree with its usage, and the row of each account and user by name."""

    tree: Tree
    own: list[float]
    usage: Longs
    at: dict[str, int]


def parse_tree(picture: str) -> TreeWithUsage:
    rows, own = [ShareAssociation("root")], [0.0]
    line: list[tuple[int, str]] = [(-1, "root")]
    for text in filter(str.strip, picture.splitlines()):
        indent = len(text) - len(text.lstrip())
        while line[-1][0] >= indent:
            line.pop()
        name, shares, *used = text.split()
        raw = ON_PARENT if shares == "parent" else int(shares)
        if used:
            rows.append(ShareAssociation(line[-1][1], name, shares=raw))
            own.append(float(used[0]))
        else:
            rows.append(ShareAssociation(name, parent=line[-1][1], shares=raw))
            own.append(0.0)
            line.append((indent, name))
    return tree_with_usage(rows, own)


def tree_with_usage(rows: list[ShareAssociation], own: list[float]) -> TreeWithUsage:
    tree = planted(rows)
    return TreeWithUsage(
        tree, own, summed(tree, own), {row.user or row.account: at for at, row in enumerate(rows)}
    )
