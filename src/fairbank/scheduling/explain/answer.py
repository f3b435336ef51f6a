"""The answer to "why does my job wait, and when will it start?", whatever the machine is made of. Instants are seconds since 1970."""

from __future__ import annotations

from enum import Enum

import msgspec


class JobCheck(msgspec.Struct, frozen=True):
    """Something that must be so before the job starts. `evidence`: what was found, in words."""

    what: str
    ok: bool
    evidence: str


class StartRange(msgspec.Struct, frozen=True):
    """When a job is likely to start: in eight of ten rehearsals it did so from `earliest` to `latest`, in one before, in one after.

    latest      None where it is not told: in more than one of ten it did not start as far as they went
    runs        how many rehearsals there were
    started     in how many of them it started
    """

    earliest: int
    latest: int | None
    runs: int
    started: int


class NoStartRange(Enum):
    """Why no range is told."""

    NO_TURN = "it has no place among those that wait, and nobody knows when it will"
    TOO_FAR = "rehearsals that may be no longer end before it starts"
    KEPT = "rehearsals go on until nothing happens any more, and it has not started"


class EarlierStart(msgspec.Struct, frozen=True):
    """`option` is what sbatch is told; `at` when the job would start with it, as things stand."""

    option: str
    at: int


class EarlierStartAdvice(msgspec.Struct, frozen=True):
    """What came of looking for something that would start a job sooner. `suggestion` None: nothing of what was tried would.

    tried    each change, as sbatch is told it or in words
    """

    suggestion: EarlierStart | None
    tried: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job waits.

    code        in Slurm's word
    position    among those that wait, one for the next; None where it has no place among them
    ahead       the numbers of those ahead of it that want some of the nodes of its partitions, in order
    waiting     how many have a place among those that wait
    expected    when it starts if everybody uses the whole time limit and nobody comes before it; None where nobody can say
    likely      None where it was not asked for, or where there is none
    untold      why there is none; None where there is, or where it was not asked for
    advice      what would start it sooner; None where it was not asked for
    """

    number: int
    code: str
    headline: str
    checks: tuple[JobCheck, ...]
    position: int | None
    ahead: tuple[int, ...]
    waiting: int
    expected: int | None
    likely: StartRange | None = None
    untold: NoStartRange | None = None
    advice: EarlierStartAdvice | None = None
