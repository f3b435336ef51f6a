"""Time until an account that used too much is back at its share, if it pauses; and its level after
a pause or a run.

The future use of the others is unknown, so there are two answers. At the latest, the others go on
as before: their usage is constant, and what the pause frees stays free. At the soonest they take
all of it, each in proportion, so that the sum of all usage is constant. Usage decays as in Slurm;
shares are constant, and ticks are ignored (up to one PriorityCalcPeriod more). A reset of all usage
(PriorityUsageResetPeriod) ends the pause at once, because nothing is used then.

With x for the part of its own usage u that is left, the usage o of the others becomes o w(x), where
w(x) = g + (1 - g) x. g is 1 if they go on as before, and (u + o) / o if they take over. Its part (u
x + c w) / (u x + o w) is known at level L: share / L. This is solved for x.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.decay import Decay

EVEN = 1.0
"""Level of an account that used its share."""


class Standpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Account that would pause, and what it is compared with. All usage is in one unit.

    `usage`: its own. `others`: that of its siblings under Fair Tree, of all others on the cluster
    under the classic rule. `charged`: the part of that which counts as its own because its account
    used it (classic; 0 right below the root and under Fair Tree). `share`: its normalised shares.
    Raises InvalidInput for values out of range.
    """

    usage: float
    others: float
    share: float
    charged: float = 0.0

    def __post_init__(self) -> None:
        for field, amount, most in (
            ("usage", self.usage, math.inf),
            ("others", self.others, math.inf),
            ("share", self.share, 1.0),
            ("charged", self.charged, self.others),
        ):
            if not 0 <= amount <= most or amount == math.inf:
                top = "" if most == math.inf else f" to {most:g}"
                raise InvalidInput(
                    f"{amount} is out of range", field=field, remedy=f"a finite number from 0{top}"
                )

    @property
    def level(self) -> float:
        """Return the level: above 1 if it used less than its share; infinite if no usage counts."""
        together, counted = self.usage + self.others, self.usage + self.charged
        if not self.share:
            return 0.0
        return self.share * together / counted if counted else math.inf


class Return(NamedTuple):
    """Seconds of pause: if others take over what it leaves, and if not. None: never."""

    soonest: float | None
    latest: float | None


def back_after(
    standpoint: Standpoint, decay: Decay, *, level: float = EVEN, reset_in: int | None = None
) -> Return:
    """Return how long the account must pause to reach `level`; 0 if it is there or above. Raises
    InvalidInput for an invalid level.

    Args:
        standpoint: account that pauses, and what it is compared with.
        level: level to reach; 1 is its share.
        reset_in: seconds until all usage is reset; None: never.
    """
    if not 0 < level < math.inf:
        raise InvalidInput(
            f"{level} is not a level", field="level", remedy="a number above 0; 1 is its share"
        )
    if standpoint.level >= level:
        return Return(0.0, 0.0)
    together = standpoint.usage + standpoint.others
    theirs = standpoint.others / together if standpoint.others else 1.0
    fading = (decay.seconds_until(_left(standpoint, level, kept)) for kept in (theirs, 1.0))
    return Return(
        *(_at_the_latest(seconds, reset_in if standpoint.share else None) for seconds in fading)
    )


class LevelRange(NamedTuple):
    """Level if the others go on as before, and if they take over. `most` None: unknown."""

    least: float
    most: float | None


def level_after(
    standpoint: Standpoint,
    decay: Decay,
    *,
    pause: int = 0,
    run: float = 0.0,
    reset_in: int | None = None,
) -> LevelRange:
    """Return the level of the account after a pause, and then a run, whose usage counts at once.

    Without decay, and after a reset, the level also depends on what the others use meanwhile. That
    is unknown, so `least` is without it.

    Args:
        standpoint: account that pauses, and what it is compared with.
        pause: length of the pause in seconds.
        run: usage of the run, in the unit of the standpoint.
        reset_in: seconds until all usage is reset; None: never.
    """
    usage, others, charged, share = (
        standpoint.usage,
        standpoint.others,
        standpoint.charged,
        standpoint.share,
    )
    if reset_in is not None and pause >= reset_in:
        after = Standpoint(usage=run, others=0.0, share=share).level
        return LevelRange(after, None if run else after)
    left = decay.remaining(pause) * usage
    growth = 1 + (usage - left) / others if others else 1.0
    least, most = (
        Standpoint(
            usage=left + run, others=others * factor, charged=charged * factor, share=share
        ).level
        for factor in (1.0, growth)
    )
    return LevelRange(least, None if pause and not decay.half_life else most)


def _at_the_latest(seconds: float | None, reset_in: int | None) -> float | None:
    known = [time for time in (seconds, reset_in) if time is not None]
    return float(min(known)) if known else None


def _left(who: Standpoint, level: float, kept: float) -> float:
    """Return the part of its own usage that must be left; 0 or less if no pause is enough. `kept`
    is 1 / g, which never overflows.
    """
    part = who.share / level
    unused = part * who.others - who.charged
    over = (1 - part) * who.usage * kept + unused * (1 - kept)
    return min(unused / over, 1.0) if over > 0 else 0.0
