"""Fronts: the narrowest and shortest of a set of jobs, which decide whether any of them fits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from fairbank.scheduling.snapshot import FOR_EVER, Hole

Shape = tuple[int, int]
"""Number of processors and limit of a job."""
Front = list[Shape]
"""Shapes that no other undercuts in both: the narrowest and longest first. A job of a set fits a
hole just if one of the front does.
"""
NO_JOB = 2 * FOR_EVER, 2 * FOR_EVER
"""Shape at an empty place: fits no hole."""


def fits_front(front: Iterable[Shape], holes: Sequence[Hole]) -> bool:
    """Return True if a shape of a front fits one of the holes."""
    hole, (hole_width, seconds) = 0, holes[0]
    for width, limit in front:
        while width > hole_width:
            hole += 1
            if hole == len(holes):
                return False
            hole_width, seconds = holes[hole]
        if limit <= seconds:
            return True
    return False


def front_of(shapes: list[Shape]) -> Front:
    """Sort the shapes and return their front."""
    front: Front = []
    shortest = 4 * FOR_EVER
    shapes.sort()
    for shape in shapes:
        if shape[1] < shortest:
            front.append(shape)
            shortest = shape[1]
    return front


def add_shape(front: Front, shape: Shape) -> bool:
    """Add a shape to a front. Return False if that changes nothing."""
    at = end = bisect_left(front, shape)
    if (at and front[at - 1][1] <= shape[1]) or (at < len(front) and front[at] == shape):
        return False
    while end < len(front) and front[end][1] >= shape[1]:
        end += 1
    front[at:end] = [shape]
    return True
