"""What the agent knows of runs and has to tell the bank, and which of it the disk has not heard yet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

import msgspec

from fairbank.slurm.agent.letters import Known, Letter, Receipt, State, Words
from fairbank.slurm.records import Answer

ENDED_KEPT = 50_000
LIVE_KEPT = 200_000
"""Runs beyond these are forgotten, the oldest first. The books come out the same: only more is said than was needed."""

UNWRITTEN_MAX = 50_000
"""Runs whose state waits for a disk that takes nothing."""

Saying = tuple[Receipt, Answer]


class Changes(msgspec.Struct, eq=False):
    """What goes to the disk in one transaction: letters by number and runs by name, None where they go away.

    `then` may be said once that is done.
    """

    letters: dict[int, Letter | None] = {}
    runs: dict[str, Known | None] = {}
    credit: bytes | None = None
    then: list[Saying] = []

    def __bool__(self) -> bool:
        return bool(self.letters or self.runs or self.credit or self.then)

    def after(self, earlier: Changes) -> Changes:
        """Both as one, this being the later."""
        return Changes(
            {**earlier.letters, **self.letters},
            {**earlier.runs, **self.runs},
            self.credit or earlier.credit,
            earlier.then + self.then,
        )


@lru_cache(maxsize=4_096)
def known(state: State, limit: int | None) -> Known:
    """The same value for the same words: most runs are alike, and there are many."""
    return Known(state, limit)


class Memory:
    """The runs that are known, and the changes that the disk has not heard."""

    def __init__(self, live: int = LIVE_KEPT, ended: int = ENDED_KEPT) -> None:
        self._live_kept, self._ended_kept = live, ended
        self._live: OrderedDict[str, Known] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self.changes = Changes()

    def restore(self, runs: Iterable[tuple[str, Known]]) -> None:
        for run, each in runs:
            if each.state is State.ENDED:
                self._ended[run] = None
            else:
                self._live[run] = each if each.words else known(each.state, each.limit)

    def __len__(self) -> int:
        return len(self._live)

    def get(self, run: str) -> Known | None:
        return known(State.ENDED, None) if run in self._ended else self._live.get(run)

    def put(self, run: str, state: State, limit: int | None, words: Words | None = None) -> Known:
        """The run is now so."""
        now = Known(state, limit, words) if words else known(state, limit)
        self.changes.runs[run] = now
        if state is State.ENDED:
            self._live.pop(run, None)
            self._ended[run] = None
            self._forget_beyond(self._ended, self._ended_kept)
        else:
            self._ended.pop(run, None)
            self._live[run] = now
            self._forget_beyond(self._live, self._live_kept)
        return now

    def _forget_beyond(
        self, where: OrderedDict[str, Known] | OrderedDict[str, None], most: int
    ) -> None:
        if len(where) > most:
            oldest, _ = where.popitem(last=False)
            self.changes.runs[oldest] = None

    def keep(self, letter: Letter) -> None:
        """It is to be written to the disk."""
        self.changes.letters[letter.seq] = letter

    def drop(self, letter: Letter) -> None:
        """It is not needed any more."""
        if not letter.stored and self.changes.letters.pop(letter.seq, None) is not None:
            return
        self.changes.letters[letter.seq] = None

    def take(self) -> Changes:
        """What is to be written now."""
        taken, self.changes = self.changes, Changes()
        return taken

    def give_back(self, failed: Changes) -> None:
        """It could not be written; what may be said then is said all the same."""
        failed.then = []
        self.changes = self.changes.after(failed)
        for run in list(islice(self.changes.runs, max(0, len(self.changes.runs) - UNWRITTEN_MAX))):
            del self.changes.runs[run]  # only what a next agent would know of it
