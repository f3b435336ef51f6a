"""Result of a fair-share algorithm: parts of shares and usage, and the factors."""

from __future__ import annotations

import msgspec
import numpy as np

from fairbank.core.slurm_numbers import NO_VAL
from fairbank.priority.fairshare.columns import Doubles, Ints, Long, Longs, quotient
from fairbank.priority.fairshare.tree import Tree

NO_LEVEL = Long(NO_VAL)
"""Level of rows without one: the root, and accounts on their parent's shares. Slurm prints it
blank; it sorts as this number.
"""


class Standings(msgspec.Struct, frozen=True, eq=False):
    """Result for all associations, as columns with one number for each row of the tree. All are
    from 0 to 1 but effective usage under DEPTH_OBLIVIOUS.

    `usage` is that of the row with all below it. Slurm never computes `norm_usage` of the root and
    prints it blank; here the root follows the rule of the others.
    """

    usage: Longs
    norm_shares: Doubles
    norm_usage: Longs
    effective_usage: Longs
    factor: Doubles


class FairTreeResult(Standings, frozen=True, eq=False):
    """Result of Fair Tree. `level` is Slurm's LevelFS, infinite without usage. `rank` is that of
    users, N for the best of N, and 0 for accounts, and so is `factor`.
    """

    level: Longs
    rank: Ints


def norm_usage(tree: Tree, usage: Longs) -> Longs:
    """Return the part of each row in all usage, at most 1; 0 if there is none."""
    parts: Longs = np.minimum(quotient(usage, usage[tree.root], Long), Long(1))
    return parts
