"""Lines upwards: how far each row is from the root. Steps are doubled, so that a long line costs little more than a short one."""

from __future__ import annotations

import numpy as np

from fairbank.priority.columns import Bools, Ints

DEPTH_MAX = 1_000
"""Levels below the root. Deeper is no tree of accounts but a mistake, and would cost time for each level."""


def distances(parent: Ints) -> Ints:
    """How many steps each row is from the row whose parent is -1; -1 itself for rows that never come there."""
    is_root = parent < 0
    above = np.where(is_root, np.arange(len(parent)), parent)
    steps = (~is_root).astype(np.int64)
    for _ in range(len(parent).bit_length()):
        if is_root[above].all():
            break
        steps = steps + steps[above]
        above = above[above]
    return np.where(is_root[above], steps, -1)


def first_above(parent: Ints, passed: Bools) -> Ints:
    """For each row the nearest row above it that is not `passed`; -1 for the root. The root itself is never passed."""
    is_root = parent < 0
    own = np.arange(len(parent))
    landing = np.where(passed & ~is_root, parent, own)
    while (passed[landing] & ~is_root[landing]).any():
        landing = landing[landing]
    return np.where(is_root, -1, landing[parent])


def in_a_circle(start: int, parent: Ints) -> list[int]:
    """The rows of the circle that the line from `start` runs into, in its order."""
    met: dict[int, int] = {}
    at = start
    while at not in met:
        met[at] = len(met)
        at = int(parent[at])
    return list(met)[met[at] :]
