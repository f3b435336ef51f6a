"""The agent without its wires: what it hears changes what it knows, and leaves things to be said, written and sent.

No I/O and no clock here: `now` is seconds of a clock that only goes forward. Shells take what is to be done from `sayings`, `memory`,
`next_request` and `lost_touch`, and tell how it went. What is heard comes by `hearing`, the bank's answers by `settling`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from fairbank.slurm.agent.faring import SETTLED_SECONDS, Faring
from fairbank.slurm.agent.later import Later
from fairbank.slurm.agent.letters import Kind, Known, Letter, Receipt, State, Words, facts, report
from fairbank.slurm.agent.memory import Changes, Memory
from fairbank.slurm.agent.mishaps import Mishaps
from fairbank.slurm.agent.pool import Senders, resized
from fairbank.slurm.agent.questions import OpenQuestion, Questions
from fairbank.slurm.agent.queue import Queue
from fairbank.slurm.agent.silence import Credit, PartitionTerms, deadline, unanswered
from fairbank.slurm.records import Answer, Noted, PrologAsked, Told, Verdict

_log = logging.getLogger(__name__)


class Core:
    """`life` differs between any two lives of agents, so that the keys of their reports do."""

    def __init__(
        self, terms_of: Callable[[str], PartitionTerms], senders: Senders, *, life: str, now: float
    ) -> None:
        self.terms_of, self.limits, self._life = terms_of, senders, life
        self.memory, self.queue, self.credit, self.bank = Memory(), Queue(), Credit(), Faring(now)
        self.questions, self.later = Questions(), Later()
        self.sayings: list[tuple[Receipt, Answer]] = []
        self.waits: list[float] = []
        """Seconds that questions have waited, since somebody last took them."""
        self.tally: Counter[tuple[str, str]] = Counter()
        self.mishaps = Mishaps(self.tally)
        self.senders, self.busy = senders.minimum, 0
        self.disk_trouble: str | None = None
        self._seq = 0
        self.unsafe: dict[str, Letter] = {}  # ends whose receipts wait
        self._idle_since = now
        self.put_off_at: float | None = None
        """When a job was put off last that the plug-in has not been asked to release."""

    def restore(
        self, runs: Iterable[tuple[str, Known]], seqs: Sequence[int], credit: bytes | None
    ) -> None:
        """Take up what an agent before this one has left on the disk."""
        self.memory.restore(runs)
        self.queue.leave(seqs)
        self._seq = max(seqs, default=0)
        if credit:
            self.credit.load(credit)

    # ------------------------------------------------------------------ what the plug-in says

    def open(
        self, told: PrologAsked, run: str, receipt: Receipt, now: float, letter: Letter | None
    ) -> None:
        """A question that waits for the bank's answer to this letter."""
        due = deadline(now, self.terms_of(told.partition), self.bank.down_since)
        question = OpenQuestion(told, now, due, (receipt,), letter)
        if due <= now:
            self._decide(run, question, now)
        else:
            self.questions.keep(run, question)

    def let_go(self, run: str) -> None:
        """Slurm has gone on without an answer: whatever is said now is only for the question to be over."""
        if (question := self.questions.take(run)) is not None:
            for each in question.receipts:
                self.say(each, None)
            if question.letter is not None:
                self.calm(question.letter)

    def news(self, letter: Letter, receipt: Receipt) -> None:
        """A letter that nobody waits for, but to know that it is safe."""
        letter.receipts = (receipt,)
        if letter.kind is Kind.COMPLETE:
            self.unsafe[letter.run] = letter
        self.memory.keep(letter)
        self.queue.add(letter)

    def letter(self, told: Told, run: str, kind: Kind, now: float) -> Letter:
        key = self.next_key()
        return Letter(self._seq, run, kind, report(told, kind, key), now)

    def next_key(self) -> str:
        self._seq += 1
        return f"{self._life}.{self._seq}"

    def calm(self, letter: Letter) -> None:
        """Nobody waits for the bank's answer to it any more."""
        self.queue.calm(letter)
        self._leave(letter)

    def _leave(self, letter: Letter) -> None:
        """What found no room in memory stays on the disk, if it is there; else it goes there first."""
        if letter.stored and self.queue.is_leaving(letter):
            self.queue.leave([letter.seq])

    # ------------------------------------------------------------------ answers

    def say(self, receipt: Receipt, words: Words | None) -> None:
        """The verdict: run, unless there are words against it."""
        self.sayings.append((receipt, verdict(receipt.number, words)))

    def answer(self, question: OpenQuestion, words: Words | None, now: float, how: str) -> None:
        """Settle a question."""
        self.waits.append(now - question.heard)
        self.tally["answers", how] += 1
        for each in question.receipts:
            self.say(each, words)

    def refuse(
        self,
        run: str,
        limit: int | None,
        words: Words,
        receipts: Iterable[Receipt],
        state: State = State.REFUSED,
    ) -> None:
        """A no is written down first, so that it is the same no when it is asked again."""
        self.memory.put(run, state, limit, words)
        self.memory.changes.then += [(each, verdict(each.number, words)) for each in receipts]

    def tick(self, now: float) -> None:
        """Decide without the bank what has waited long enough."""
        for run, question in self.questions.overdue(now):
            self._decide(run, question, now)
        for letter in self.later.due(now):
            self.queue.add(letter)
            self._leave(letter)
        if self.busy:
            self._idle_since = now
        self.senders = resized(self.senders, self.limits, waited=0.0, idle=now - self._idle_since)

    def run_ahead(self, run: str, times: int, now: float) -> None:
        """Let a run start before the bank has answered, if so many times its price was left a moment ago."""
        question = self.questions.get(run)
        if question is None or question.letter is None or not self.bank.up:
            return
        said = facts(question.letter)
        if self.credit.is_fresh(said, now) and self.credit.take(said, times):
            self.questions.take(run)
            self.memory.put(run, State.LET, question.asked.limit_seconds)
            self.answer(question, None, now, "ahead")
            self.calm(question.letter)

    def _decide(self, run: str, question: OpenQuestion, now: float) -> None:
        asked, letter = question.asked, question.letter
        terms = self.terms_of(asked.partition)
        said = facts(letter) if letter else msgspec.json.decode(report(asked, Kind.HOLD, ""))
        words = unanswered(terms, said, self.credit, batch=asked.batch)
        if words is None:
            self.memory.put(run, State.LET, asked.limit_seconds)
            self.answer(question, None, now, f"{terms.silence.value}: run")
            if letter is not None:
                self.calm(letter)
            return
        if letter is not None and self.queue.withdraw(letter):
            self.memory.drop(letter)
        self.waits.append(now - question.heard)
        self.tally["answers", f"{terms.silence.value}: put off"] += 1
        self.put_off_at = now
        self.refuse(run, asked.limit_seconds, words, question.receipts, State.PUT_OFF)

    def put_off_again(self, receipt: Receipt, words: Words | None, now: float) -> None:
        """The plug-in has not heard that a job was put off, and the bank is still away."""
        self.put_off_at = now
        self.say(receipt, words)

    def lost_touch(self, now: float) -> bool:
        """Whether to hang up on the plug-in, once: it releases what was put off when it finds an agent, and the bank is back.

        It takes a moment to put a job off, and must not find us before it has. A bank that takes requests and answers none is not away
        until the first of them has failed, and not there either.
        """
        if (
            self.put_off_at is None
            or now - self.put_off_at < SETTLED_SECONDS
            or not self.bank.is_back(now)
        ):
            return False
        if self.busy and not self.bank.heard_since(self.put_off_at):
            return False
        self.put_off_at = None
        return True

    # ------------------------------------------------------------------ the bank

    def next_due(self) -> float | None:
        """When letters that wait for no other request are to go; None when there are none."""
        return self.queue.due(self.limits.gather)

    def next_request(self, now: float) -> list[Letter]:
        """Letters to be sent now as one request; none when none are due, or enough requests are under way."""
        due = self.next_due()
        late = 0.0 if due is None else now - due
        if now < self.bank.retry_at or not (self.queue.is_split or (due is not None and late >= 0)):
            return []
        if self.busy >= self.senders:
            self.senders = resized(self.senders, self.limits, waited=late, idle=0.0)
        if self.busy >= (self.senders if self.bank.up else 1):
            return []
        batch, needless = self.queue.take(self.limits.batch)
        for each in needless:
            self.over(each)
        if batch:
            self.busy += 1
        return batch or (self.next_request(now) if needless else [])

    def replace(self, letter: Letter) -> None:
        """Tell it as something else, before whatever else there is of the run."""
        self.memory.keep(letter)
        self.queue.back([letter])

    def over(self, letter: Letter) -> None:
        """It need not be kept any more: the bank has it, or has better."""
        self.memory.drop(letter)
        self._note(letter)

    def _note(self, letter: Letter) -> None:
        self.sayings += [(each, Noted(number=each.number)) for each in letter.receipts]
        letter.receipts = ()
        if self.unsafe.get(letter.run) is letter:
            del self.unsafe[letter.run]

    # ------------------------------------------------------------------ the disk

    def stored(self, changes: Changes) -> None:
        """They are on the disk."""
        self.disk_trouble = None
        self.sayings += changes.then
        for letter in changes.letters.values():
            if letter is None:
                continue
            letter.stored = True
            self._note(letter)
            self._leave(letter)

    def not_stored(self, changes: Changes, trouble: str) -> None:
        """They are not. What the bank has heard is safe all the same, and what it has not, stays in memory."""
        if self.disk_trouble is None:
            _log.error(
                "the outbox cannot be written: %s; make room for it. Until then only what the bank has heard is acknowledged",
                trouble,
            )
        self.disk_trouble = trouble
        self.sayings += changes.then
        for letter in changes.letters.values():
            if letter is not None and self.queue.is_leaving(letter):
                self.queue.insist(letter)
        self.memory.give_back(changes)


def verdict(number: int, words: Words | None) -> Verdict:
    """The answer to a question: run, or what is said against it."""
    if words is None:
        return Verdict(number=number, say="run")
    return Verdict(number=number, say=words.say, reason=words.reason, text=words.text)
