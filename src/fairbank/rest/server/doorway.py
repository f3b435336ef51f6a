"""Who has which connections: the Unix socket and TCP apart, and of each nobody more than a share."""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable

from fairbank.rest.server.portions import Portions

SAY_AGAIN_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Doorway:
    """The open connections of one way in. Those turned away are told in the log, a line a minute at most."""

    def __init__(self, name: str, connections_max: int) -> None:
        self._name, self._shares = name, Portions(connections_max)
        self._say_at = 0.0

    @property
    def full(self) -> bool:
        return self._shares.taken >= self._shares.total

    def enter(self, who: Hashable, most: int) -> bool:
        """Whether `who` gets one more connection, `most` in all."""
        if self._shares.of(who) < most and self._shares.take(who):
            return True
        if time.monotonic() >= self._say_at:
            self._say_at = time.monotonic() + SAY_AGAIN_SECONDS
            facts = (self._name, self._shares.taken, self._shares.total, self._shares.of(who), who)
            _log.warning(
                "connections over %s are turned away: %d of %d are open, %d of them of %s", *facts
            )
        return False

    def leave(self, who: Hashable) -> None:
        """One that entered is closed."""
        self._shares.give_back(who)
