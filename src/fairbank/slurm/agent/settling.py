"""What the bank's answer to a letter changes: the run, its question, perhaps another letter."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from fairbank.core.errors import FairbankError, Forbidden
from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.faring import Next, after_failure
from fairbank.slurm.agent.judging import given_up, words
from fairbank.slurm.agent.letters import Kind, Known, Letter, State, facts, turned
from fairbank.slurm.agent.mishaps import Mishap
from fairbank.slurm.report_results import Judgement, ReportResult

_log = logging.getLogger(__name__)
_HELD = (ReportResult.GRANTED, ReportResult.TAKEN, ReportResult.RESOLVED, ReportResult.OVER)
_UNHOLDABLE = (ReportResult.UNBILLABLE, ReportResult.EARLY)


def answered(core: Core, batch: list[Letter], came: Sequence[Judgement], now: float) -> None:
    """The bank's answers to a request, one a letter."""
    core.busy -= 1
    barred = [
        letter
        for letter, each in zip(batch, came, strict=True)
        if each.came is ReportResult.NOT_ALLOWED
    ]
    if len(barred) < len(batch) and core.bank.answered(now):
        _log.info("the bank answers")
    for letter, each in zip(batch, came, strict=True):
        if each.came is not ReportResult.NOT_ALLOWED:
            _settle(core, letter, each, now)
    if barred:
        _away(
            core,
            barred,
            Forbidden(
                next(each.text for each in came if each.came is ReportResult.NOT_ALLOWED),
                field="cluster",
            ),
            now,
        )


def failed(core: Core, batch: list[Letter], trouble: FairbankError, now: float) -> None:
    """A request failed as a whole."""
    core.busy -= 1
    match after_failure(trouble, len(batch), batch[0].tried):
        case Next.AGAIN:
            _away(core, batch, trouble, now)
        case Next.SPLIT:
            core.queue.split(batch)
        case Next.ASIDE:
            _log.error(
                "set aside what the bank cannot take (%s): %s",
                trouble.message,
                batch[0].body.decode(),
            )
            core.mishaps.befell(
                Mishap.SET_ASIDE, f"{batch[0].kind.value} of {batch[0].run}: {trouble.message}", now
            )
            _settle(
                core,
                batch[0],
                Judgement(ReportResult.UNBILLABLE, "Fairbank_cannot_bill_this", trouble.message),
                now,
            )


def _away(core: Core, letters: list[Letter], trouble: FairbankError, now: float) -> None:
    if core.bank.failed(trouble, now):
        _log.warning("%s; %s", trouble.message, trouble.remedy or "trying again")
    core.tally["failures", trouble.title] += 1
    core.queue.back(letters, urgent=(each.run for each in letters if each.run in core.questions))


def _settle(core: Core, letter: Letter, judgement: Judgement, now: float) -> None:
    """Do what the answer asks for. The letter is done with, unless it is to be told as another kind."""
    core.queue.done(letter)
    core.tally[f"told {letter.kind.value}", judgement.came.value] += 1
    core.credit.learn(facts(letter), judgement, now)
    match letter.kind:
        case Kind.HOLD:
            _hold(core, letter, judgement, now)
        case Kind.ADJUST:
            _adjust(core, letter, judgement)
        case Kind.COMPLETE:
            _complete(core, letter, judgement, now)


def _hold(core: Core, letter: Letter, judgement: Judgement, now: float) -> None:
    known = core.memory.get(letter.run)
    if judgement.came in _HELD:
        _held(core, letter, known, judgement, now)
    elif known is not None and known.state is State.ASKED:
        _refused(core, letter, known, judgement, now)
    elif known is not None and known.state is State.LET:
        _log.warning("%s runs, but the bank holds nothing for it: %s", letter.run, judgement.text)
        core.memory.put(letter.run, State.UNHELD, known.limit)
        if judgement.came in _UNHOLDABLE:
            core.mishaps.befell(Mishap.UNHELD, f"{letter.run}: {judgement.text}", now)
    core.over(letter)
    if (
        judgement.came is ReportResult.TAKEN
        and known is not None
        and known.state in (State.ASKED, State.LET)
        and not letter.turned
    ):
        core.replace(turned(letter, Kind.ADJUST, core.next_key()))


def _held(
    core: Core, letter: Letter, known: Known | None, judgement: Judgement, now: float
) -> None:
    over = judgement.came is ReportResult.OVER
    if over or judgement.came is ReportResult.RESOLVED:
        _log.warning(
            "%s is to start, but is charged or released already: %s", letter.run, judgement.text
        )
    if known is not None and known.state in (State.ASKED, State.LET, State.UNHELD):
        core.memory.put(
            letter.run, State.ENDED if over else State.HELD, None if over else known.limit
        )
    if (question := core.questions.take(letter.run)) is not None:
        core.answer(question, None, now, "granted")


def _refused(core: Core, letter: Letter, known: Known, judgement: Judgement, now: float) -> None:
    said = facts(letter)
    terms = core.terms_of(said["partition"])
    question = core.questions.take(letter.run)
    if judgement.came in _UNHOLDABLE and terms.unbillable == "run":
        _log.warning(
            "%s runs without a hold, and the bank is told its end: %s", letter.run, judgement.text
        )
        core.mishaps.befell(Mishap.UNHELD, f"{letter.run}: {judgement.text}", now)
        core.memory.put(letter.run, State.UNHELD, known.limit)
        if question is not None:
            core.answer(question, None, now, "unbillable: run")
        return
    no = words(terms.refusal, judgement, said["account"])
    if (
        judgement.came is ReportResult.NEVER_BEGAN
    ):  # the agent before this one knew it, and its memory is lost
        no = given_up(batch=question is None or question.asked.batch)
        core.put_off_at = now
    _log.info("%s is refused: %s", letter.run, no.text)
    if question is not None:
        core.waits.append(now - question.heard)
        core.tally["answers", judgement.came.value] += 1
    core.refuse(letter.run, known.limit, no, question.receipts if question is not None else ())


def _adjust(core: Core, letter: Letter, judgement: Judgement) -> None:
    core.over(letter)
    if judgement.came is ReportResult.NO_HOLD and not letter.turned:
        core.replace(turned(letter, Kind.HOLD, core.next_key()))
    elif judgement.came not in _HELD:
        _log.warning(
            "%s has a new time limit that the bank does not hold for: %s",
            letter.run,
            judgement.text,
        )


def _complete(core: Core, letter: Letter, judgement: Judgement, now: float) -> None:
    if judgement.came is ReportResult.EARLY:
        _log.warning(
            "%s has ended, and the bank does not charge it yet: %s", letter.run, judgement.text
        )
        core.later.put(letter, now)
        return
    core.over(letter)
    if judgement.came is not ReportResult.GRANTED:
        _log.warning(
            "%s has ended, and the bank has not charged it: %s", letter.run, judgement.text
        )
