"""Which letters go next: questions before news, each run's in their order and never in two requests at once, what is superseded not at all.

No I/O. In memory are the questions and a window of the rest; what is beyond the window is on disk, known here by its number only.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence

from fairbank.slurm.agent.letters import Kind, Letter

WINDOW = 4_000
"""Letters other than open questions that are kept in memory."""

REFILL = 1_000
"""How many are read back from the disk at once."""

CROWD = 100
"""So many letters that nobody waits for wait for no others."""


class Queue:
    """Letters that wait, and those that are under way."""

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._urgent: OrderedDict[int, Letter] = OrderedDict()
        self._rest: OrderedDict[int, Letter] = OrderedDict()
        self._by_run: dict[str, int] = {}  # how many letters of a run wait in memory
        self._under_way: dict[int, Letter] = {}
        self._busy: set[str] = set()
        self._alone: deque[list[Letter]] = deque()  # parts of a request that failed as a whole
        self._apart: Counter[str] = Counter()  # how many letters of a run are in them
        self._lonely: set[int] = set()  # those letters of such a part that are under way
        self._leaving: set[int] = set()  # found no room, and are not on disk yet
        self._away: deque[int] = deque()  # on disk only
        self._loading = 0

    # ------------------------------------------------------------------ what there is

    def __len__(self) -> int:
        return self.waiting + len(self._under_way)

    @property
    def waiting(self) -> int:
        """Letters that are not under way."""
        return (
            len(self._urgent)
            + len(self._rest)
            + sum(map(len, self._alone))
            + len(self._leaving)
            + self.on_disk_only
        )

    @property
    def on_disk_only(self) -> int:
        return len(self._away) + self._loading

    @property
    def is_split(self) -> bool:
        """Whether parts of a request that failed as a whole wait."""
        return bool(self._alone)

    def oldest(self) -> float | None:
        """When the oldest letter in memory was heard."""
        firsts = [
            next(iter(each.values())).heard
            for each in (self._under_way, self._urgent, self._rest)
            if each
        ]
        return min([*firsts, *(each[0].heard for each in self._alone)], default=None)

    def due(self, gather: float) -> float | None:
        """When the next request is to go, parts of one that failed apart; None when nothing may be sent. A question goes at once, and takes
        along what waits; what nobody waits for goes so many seconds after it was heard, unless it is a crowd.
        """
        question, news = self._first_free(self._urgent), self._first_free(self._rest)
        if question is not None or news is None:
            return question
        return news if len(self._rest) >= CROWD else news + gather

    def _first_free(self, where: OrderedDict[int, Letter]) -> float | None:
        """When the first letter there that may be sent was heard."""
        return next((each.heard for each in where.values() if self._free(each)), None)

    # ------------------------------------------------------------------ coming

    def add(self, letter: Letter, *, urgent: bool = False) -> bool:
        """Whether there was room: behind others that have left memory, or are about to, there is none. What finds none is handed to `leave`
        once it is on disk, or else to `insist`. A question always finds room."""
        if urgent and letter.run not in self._by_run:
            self._put(self._urgent, letter)
        elif not urgent and (self._leaving or self.on_disk_only or len(self._rest) >= self._window):
            self._leaving.add(letter.seq)
            return False
        else:
            self._put(self._rest, letter)
        return True

    def is_leaving(self, letter: Letter) -> bool:
        """Whether it found no room, and waits for the disk."""
        return letter.seq in self._leaving

    def insist(self, letter: Letter) -> None:
        """Keep a letter in memory whatever the window is: there is no disk to leave it on."""
        self._leaving.discard(letter.seq)
        self._put(self._rest, letter)

    def leave(self, seqs: Sequence[int]) -> None:
        """These are on disk, and not in memory."""
        self._leaving.difference_update(seqs)
        self._away.extend(seqs)

    def wanted(self) -> list[int]:
        """Numbers of letters that are to be read from the disk now."""
        if self._loading or not self._away or len(self._rest) > self._window // 2:
            return []
        numbers = [self._away.popleft() for _ in range(min(REFILL, len(self._away)))]
        self._loading = len(numbers)
        return numbers

    def loaded(self, letters: Iterable[Letter]) -> None:
        """What was wanted is here; some may have been withdrawn meanwhile."""
        self._loading = 0
        for each in letters:
            self._put(self._rest, each)

    def not_loaded(self, numbers: list[int]) -> None:
        """The disk did not give them: they are wanted again."""
        self._loading = 0
        self._away.extendleft(reversed(numbers))

    def _put(self, where: OrderedDict[int, Letter], letter: Letter) -> None:
        where[letter.seq] = letter
        self._by_run[letter.run] = self._by_run.get(letter.run, 0) + 1

    # ------------------------------------------------------------------ going

    def take(self, most: int) -> tuple[list[Letter], list[Letter]]:
        """The next request, and letters that need not be sent any more. Both are empty when nothing may be sent."""
        if (
            self._alone and not self._lonely
        ):  # one part after the other: they may hold letters of one run
            batch = self._alone.popleft()
            self._lonely = {each.seq for each in batch}
            self._apart -= Counter(each.run for each in batch)
        else:
            batch = self._collect(most)
        batch, over = slimmed(batch)
        for each in batch:
            self._under_way[each.seq] = each
            self._busy.add(each.run)
            each.tried += 1
        return batch, over

    def _collect(self, most: int) -> list[Letter]:
        batch: list[Letter] = []
        for where in (self._urgent, self._rest):
            for each in [each for each in _first(where.values(), most * 2) if self._free(each)][
                : most - len(batch)
            ]:
                self._pop(where, each)
                batch.append(each)
        return batch

    def _free(self, letter: Letter) -> bool:
        return letter.run not in self._busy and letter.run not in self._apart

    def _pop(self, where: OrderedDict[int, Letter], letter: Letter) -> None:
        del where[letter.seq]
        left = self._by_run[letter.run] - 1
        if left:
            self._by_run[letter.run] = left
        else:
            del self._by_run[letter.run]

    def done(self, letter: Letter) -> None:
        """It was answered."""
        self._under_way.pop(letter.seq, None)
        self._lonely.discard(letter.seq)
        self._busy.discard(letter.run)

    def back(self, letters: list[Letter], *, urgent: Iterable[str] = ()) -> None:
        """They were not answered: they go first when the bank is asked again, those of the runs named before all others."""
        if self._lonely.intersection(each.seq for each in letters):
            self._keep_apart(letters)
            return
        questions = frozenset(urgent)
        for each in reversed(letters):
            self.done(each)
            where = self._urgent if each.run in questions and each.kind is Kind.HOLD else self._rest
            self._put(where, each)
            where.move_to_end(each.seq, last=False)

    def split(self, letters: list[Letter]) -> None:
        """They failed as a whole: each half is tried by itself."""
        middle = (len(letters) + 1) // 2
        for half in (letters[middle:], letters[:middle]):
            self._keep_apart(half)

    def _keep_apart(self, letters: list[Letter]) -> None:
        if letters:
            self._alone.appendleft(letters)
        for each in letters:
            self._lonely.discard(each.seq)
            self._under_way.pop(each.seq, None)
            self._busy.discard(each.run)
            self._apart[each.run] += 1  # so that nothing overtakes them

    # ------------------------------------------------------------------ changing its mind

    def calm(self, letter: Letter) -> None:
        """A question that was decided meanwhile waits with the news from now on, and finds room like these (`add`)."""
        if letter.seq in self._urgent:
            self._pop(self._urgent, letter)
            self.add(letter)

    def withdraw(self, letter: Letter) -> bool:
        """Take a letter out, unless it is under way or on disk only. Whether it was there."""
        for where in (self._urgent, self._rest):
            if letter.seq in where:
                self._pop(where, letter)
                return True
        return False


def _first(letters: Iterable[Letter], most: int) -> list[Letter]:
    found = []
    for each in letters:
        found.append(each)
        if len(found) == most:
            break
    return found


def slimmed(batch: list[Letter]) -> tuple[list[Letter], list[Letter]]:
    """What of a request is to be sent, and what later letters of it make needless.

    A limit is needless before another one and before the end. A hold never is, not even before the end of a run that never began: an
    agent before this one may have sent it and been killed, and then only the end takes it back.
    """
    needless: set[int] = set()
    followed: set[str] = set()
    for each in reversed(batch):
        if each.kind is Kind.ADJUST and each.run in followed:
            needless.add(each.seq)
        followed.add(each.run)
    return [each for each in batch if each.seq not in needless], [
        each for each in batch if each.seq in needless
    ]
