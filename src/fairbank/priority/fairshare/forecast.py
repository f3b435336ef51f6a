"""When somebody who used too much is back at its share, if it pauses.

Nobody knows what the others will run, so there are two answers. At the latest the others go on as before: their usage stays what it is,
and what the pause leaves free stays free. At the soonest they take all of it, each in proportion, so that all usage together stays what it
is. Usage fades as in Slurm; shares stay, and ticks fall as they like (up to one PriorityCalcPeriod more). When all usage is reset
(PriorityUsageResetPeriod), whoever pauses has used nothing, and is back at once.

With x for what is left of its own usage u, the others' usage o becomes o w(x), where w(x) = g + (1 - g) x: g is 1 when they go on, and
(u + o) / o when they take over. Its part (u x + c w) / (u x + o w) is a known one at level L, share / L; that is solved for x.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.decay import Decay

EVEN = 1.0
"""The level of who used its share."""


class Standpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Who would pause, and what it is measured against. Usage is in one unit, any.

    `usage`: its own. `others`: that of its siblings under Fair Tree, of all others on the cluster under the classic rule. `charged`: how
    much of that is counted as its own because its account used it (classic; 0 right below the root and under Fair Tree). `share`: its
    normalised shares. Raises InvalidInput for what is out of range.
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
        """Above 1 it used less than its share; infinite when nothing counts as used."""
        together, counted = self.usage + self.others, self.usage + self.charged
        if not self.share:
            return 0.0
        return self.share * together / counted if counted else math.inf


class Return(NamedTuple):
    """Seconds of pause until it is back: if the others take over what it leaves, and if they go on as before. None: never."""

    soonest: float | None
    latest: float | None


def back_after(
    who: Standpoint, decay: Decay, *, level: float = EVEN, reset_in: int | None = None
) -> Return:
    """How long `who` must pause to stand at `level`; 0 for who stands there or above. `reset_in`: seconds until all usage is reset, None
    when it never is. Raises InvalidInput for a level that is none."""
    if not 0 < level < math.inf:
        raise InvalidInput(
            f"{level} is not a level", field="level", remedy="a number above 0; 1 is its share"
        )
    if who.level >= level:
        return Return(0.0, 0.0)
    together = who.usage + who.others
    theirs = who.others / together if who.others else 1.0
    fading = (decay.seconds_until(_left(who, level, kept)) for kept in (theirs, 1.0))
    return Return(*(_at_the_latest(seconds, reset_in if who.share else None) for seconds in fading))


def _at_the_latest(seconds: float | None, reset_in: int | None) -> float | None:
    known = [each for each in (seconds, reset_in) if each is not None]
    return float(min(known)) if known else None


def _left(who: Standpoint, level: float, kept: float) -> float:
    """What must be left of its own usage, as a part of it; 0 or less when no pause is enough. `kept` is 1 / g, which never overflows."""
    part = who.share / level
    room = part * who.others - who.charged
    over = (1 - part) * who.usage * kept + room * (1 - kept)
    return min(room / over, 1.0) if over > 0 else 0.0
