"""Fair Tree: ranking the associations of a whole cluster, beside the same formula in plain
Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import numpy as np

from benchmarks.measure import Curve, Figure, Say, Table, at_most, rate_each, ratio
from benchmarks.plain_fair_tree import PlainFairTree
from fairbank.priority.fairshare.columns import Longs
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.tree import ShareAssociation, Tree, build_tree, sum_usage

REMARK = """
Both get a finished tree. The measured part is what every tick repeats: levels, order, ties, ranks,
and all columns of `sshare` for each association. Fairbank computes in long doubles, as slurmctld
does; plain Python has only doubles.
"""

LEVELS = 21
PROMISED = 100_000
SIZES = (1_000, 10_000, PROMISED, 1_000_000)
PLAIN_UP_TO = PROMISED
FAIRBANK, PLAIN = "Fairbank", "plain Python"


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds, sizes = (3, SIZES[:3]) if short else (15, SIZES)
    figures: dict[str, Figure] = {}
    for size in sizes:
        say(f"{size:,} associations")
        figures |= {
            name: _milliseconds(rate)
            for name, rate in rate_each(dict(_contenders(size)), rounds).items()
        }
    ours, plain = (figures[_name(who, PROMISED)] for who in (FAIRBANK, PLAIN))
    promises = (
        ratio("plain Python / Fairbank", plain, ours, 8),
        at_most(f"{PROMISED:,} associations", ours, 60),
    )
    about = (
        f"One ranking of all users of a tree of {LEVELS} levels. One association in ten is an "
        "account; every other user has no usage."
    )
    curves = (
        Curve(FAIRBANK, tuple((size, _name(FAIRBANK, size)) for size in sizes)),
        Curve(PLAIN, tuple((size, _name(PLAIN, size)) for size in sizes if size <= PLAIN_UP_TO)),
    )
    return [Table("Fair Tree", about, tuple(figures.values()), promises, curves, "associations")]


def _contenders(size: int) -> Iterator[tuple[str, Callable[[], int]]]:
    tree, usage = grow_tree(size)
    yield _name(FAIRBANK, size), partial(_ours, tree, usage)
    if size <= PLAIN_UP_TO:
        yield (
            _name(PLAIN, size),
            partial(_plain, PlainFairTree(tree), [float(used) for used in usage]),
        )


def _name(who: str, size: int) -> str:
    return f"{who}, {size:,} associations"


def _ours(tree: Tree, usage: Longs) -> int:
    fair_tree(tree, usage)
    return 1


def _plain(tree: PlainFairTree, usage: list[float]) -> int:
    tree.rank(usage)
    return 1


def _milliseconds(rate: Figure) -> Figure:
    return Figure(rate.name, "ms", tuple(1_000 / per_second for per_second in rate.rounds))


def grow_tree(size: int, levels: int = LEVELS) -> tuple[Tree, Longs]:
    """Return a tree of `size` associations in `levels` levels, the root included, and the users'
    usage. It is the same for each call.
    """
    chance = Random(size)
    at_level = [["root"]]
    rows = [ShareAssociation("root")]
    for level in range(1, levels - 1):
        at_level.append(
            [f"a{level}_{number}" for number in range(max(1, size // 10 // (levels - 2)))]
        )
        rows += (
            ShareAssociation(
                name, parent=chance.choice(at_level[-2]), shares=chance.randint(1, 100)
            )
            for name in at_level[-1]
        )
    accounts = [name for names in at_level for name in names]
    rows.append(ShareAssociation(accounts[-1], "deepest"))
    rows += (
        ShareAssociation(chance.choice(accounts), f"u{at}", shares=chance.randint(1, 100))
        for at in range(len(rows), size)
    )
    tree = build_tree(rows)
    own = np.fromiter(
        (chance.randrange(1, 10**9) if at % 2 and row.user else 0 for at, row in enumerate(rows)),
        np.int64,
        size,
    )
    return tree, sum_usage(tree, own)
