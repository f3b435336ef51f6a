"""Ends that the bank's clock finds too early: they wait, in no queue, and are told again."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from fairbank.slurm.agent.letters import Letter

EARLY_SECONDS = 600
"""How long an end waits at first."""

_DAY = 86_400


class Later:
    """Letters by when they are due: after ten minutes, and each time after twice as long, at most a day. A life begun anew tells all."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, Letter]] = []  # when it is due, and its number

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, letter: Letter, now: float) -> None:
        """Keep it until it is due."""
        heapq.heappush(
            self._waiting,
            (now + min(EARLY_SECONDS * 2 ** (letter.tried - 1), _DAY), letter.seq, letter),
        )

    def due(self, now: float) -> Iterator[Letter]:
        """Those whose time has come; they wait here no longer."""
        while self._waiting and self._waiting[0][0] <= now:
            yield heapq.heappop(self._waiting)[2]
