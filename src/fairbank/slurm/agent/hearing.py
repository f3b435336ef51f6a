"""What the plug-in says changes: runs, their questions, and letters to the bank.

The end of a run that never began resolves it for good, and it keeps its no. A slurmctld that is killed before it has saved such an end asks
once more; were the run let run then, nobody would pay for it. Put back into the queue, it comes again as another run.
"""

from __future__ import annotations

import logging

from fairbank.slurm.agent.clocks import doubt_of
from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.judging import SILENCE, no_limit, put_off
from fairbank.slurm.agent.letters import Kind, Receipt, State
from fairbank.slurm.agent.mishaps import Mishap
from fairbank.slurm.records import EpilogTold, LimitChanged, Noted, PrologAsked, Told
from fairbank.slurm.report_results import ReportResult

_log = logging.getLogger(__name__)
_RUNNING = (State.HELD, State.LET, State.UNHELD)


def hear(core: Core, told: Told, door: object, now: float) -> None:
    """The plug-in says this at that door, perhaps not for the first time, and wants an answer."""
    run, receipt = str(told.run), Receipt(door, told.number)
    core.tally["heard", type(told).__name__] += 1
    match told:
        case PrologAsked():
            _asked(core, told, run, receipt, now)
        case LimitChanged():
            _limit(core, told, run, receipt, now)
        case EpilogTold():
            _ended(core, told, run, receipt, now)


def _asked(core: Core, told: PrologAsked, run: str, receipt: Receipt, now: float) -> None:
    if (question := core.questions.get(run)) is not None:
        question.receipts = (*question.receipts[-3:], receipt)
        return
    known = core.memory.get(run)
    if known is None or (known.state is State.PUT_OFF and core.bank.up):
        _asked_first(core, told, run, receipt, now)
    elif known.state is State.ASKED:
        core.open(told, run, receipt, now, None)
    elif known.state is State.PUT_OFF or (
        known.words is not None and known.words.reason == SILENCE
    ):
        core.put_off_again(receipt, known.words, now)
    else:
        if known.state is State.ENDED:
            _log.warning("%s asks to start after it has ended: it is let run", run)
        core.say(receipt, known.words)


def _asked_first(core: Core, told: PrologAsked, run: str, receipt: Receipt, now: float) -> None:
    terms = core.terms_of(told.partition)
    if told.limit_seconds is not None:
        letter = core.letter(told, run, Kind.HOLD, now)
        core.memory.put(run, State.ASKED, told.limit_seconds)
        core.memory.keep(letter)
        core.queue.add(letter, urgent=True)
        core.open(told, run, receipt, now, letter)
        if terms.ahead:
            core.run_ahead(run, terms.ahead, now)
    elif terms.unbillable == "run":
        _log.warning(
            "%s has no time limit: it runs without a hold, and the bank is told its end", run
        )
        core.tally["answers", "unbillable: run"] += 1
        core.mishaps.befell(Mishap.UNHELD, f"{run}: it has no time limit", now)
        core.memory.put(run, State.UNHELD, None)
        core.say(receipt, None)
    else:
        core.tally["answers", ReportResult.UNBILLABLE.value] += 1
        core.refuse(run, None, no_limit(terms.refusal), (receipt,))


def _limit(core: Core, told: LimitChanged, run: str, receipt: Receipt, now: float) -> None:
    """It runs, with this limit. What nobody asked us about, or others let run, is held from now on."""
    known, limit = core.memory.get(run), told.limit_seconds
    state = known.state if known else None
    core.let_go(run)
    held = state in (State.ASKED, State.HELD, State.LET)
    if state is State.ENDED or (known and state in _RUNNING and known.limit == limit):
        _note(core, receipt)
    elif limit is None:
        _log.warning("%s has no time limit any more: what it may cost cannot be held", run)
        core.memory.put(run, State.HELD if held else State.UNHELD, None)
        _note(core, receipt)
    else:
        core.memory.put(run, State.HELD if state is State.HELD else State.LET, limit)
        if state is State.ASKED and known and known.limit == limit:
            _note(core, receipt)  # its hold is on the way
        else:
            core.news(core.letter(told, run, Kind.ADJUST if held else Kind.HOLD, now), receipt)


def _ended(core: Core, told: EpilogTold, run: str, receipt: Receipt, now: float) -> None:
    known = core.memory.get(run)
    core.let_go(run)
    if known is not None and known.state is State.REFUSED and not told.begun:
        _note_when_safe(
            core, run, receipt
        )  # the bank holds nothing for it, or is told of it already
    elif known is not None and known.state is State.ENDED:
        _note_when_safe(core, run, receipt)
    else:
        if told.begun:
            core.memory.put(run, State.ENDED, None)
            _doubt(told, run)
        else:
            core.memory.put(
                run, State.REFUSED, None, (known and known.words) or put_off(batch=told.batch)
            )
        core.news(core.letter(told, run, Kind.COMPLETE, now), receipt)


def _doubt(told: EpilogTold, run: str) -> None:
    if (doubt := doubt_of(told)) is not None:
        _log.warning("%s %s", run, doubt)


def _note_when_safe(core: Core, run: str, receipt: Receipt) -> None:
    if (letter := core.unsafe.get(run)) is not None:
        letter.receipts = (*letter.receipts[-3:], receipt)
    else:
        _note(core, receipt)


def _note(core: Core, receipt: Receipt) -> None:
    core.sayings.append((receipt, Noted(number=receipt.number)))
