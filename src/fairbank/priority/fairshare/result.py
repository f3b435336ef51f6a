"""Where each association stands: its part of shares and of usage, and the factor that follows."""

from __future__ import annotations

import msgspec
import numpy as np

from fairbank.core.slurm_numbers import NO_VAL
from fairbank.priority.fairshare.columns import Doubles, Ints, Long, Longs, quotient
from fairbank.priority.fairshare.tree import Tree

NO_LEVEL = Long(NO_VAL)
"""The level of who has none: the root, and accounts on their parent's shares. Slurm prints it blank; it sorts as this number."""


class Standings(msgspec.Struct, frozen=True, eq=False):
    """How all associations stand, in columns with one number for each row of the tree. All are from 0 to 1 but effective usage under
    DEPTH_OBLIVIOUS.

    `usage` is what the row used with all below it. Slurm never computes `norm_usage` of the root and prints it blank; here the root
    follows the rule of the others.
    """

    usage: Longs
    norm_shares: Doubles
    norm_usage: Longs
    effective_usage: Longs
    factor: Doubles


class FairTreeResult(Standings, frozen=True, eq=False):
    """How they stand under Fair Tree. `level` is Slurm's LevelFS, infinite where nothing was used; `rank` is that of users, N for the
    best of N, and 0 for accounts, as is their `factor`."""

    level: Longs
    rank: Ints


def norm_usage(tree: Tree, usage: Longs) -> Longs:
    """Each row's part of all usage, at most 1; 0 where there is none."""
    parts: Longs = np.minimum(quotient(usage, usage[tree.root], Long), Long(1))
    return parts
