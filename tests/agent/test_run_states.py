"""Invariants of the table of run states."""

from __future__ import annotations

from collections import Counter

import pytest

from fairbank.agent.run_events import Occurrence, warning
from fairbank.agent.run_states import (
    PROLOGS,
    ROWS,
    TABLE,
    AgentEffect,
    AgentEvent,
    AgentRunState,
    state_diagram,
    step,
)

S = AgentRunState
E = AgentEvent
F = AgentEffect

# slurmctld does not wait after these messages: they show that it has continued.
GONE_ON = {E.LIMIT_SAME, E.LIMIT_CHANGED, E.LIMIT_NONE, E.EPILOG, E.EPILOG_NEVER_STARTED}
NEVER_CHOSEN = {(state, E.LIMIT_SAME) for state in (S.NEW, S.REFUSED, S.DEFERRED)}
"""Pairs that `run_events.limit_event` never gives: the limit is unknown, or of a refused run."""
# Sorted: the table is made from sets, whose order differs from process to process.
WARNED = sorted(
    (pair for pair, (_, effects) in TABLE.items() if F.WARN in effects),
    key=lambda pair: (pair[0].value, pair[1].value),
)


def test_no_pair_is_in_two_rows() -> None:
    pairs = Counter(
        (state, event) for states, events, _, _ in ROWS for state in states for event in events
    )
    assert [pair for pair, count in pairs.items() if count > 1] == []


def test_leaving_waiting_answers_slurmctld() -> None:
    leaving = {
        event: effects
        for (state, event), (new, effects) in TABLE.items()
        if state is S.WAITING and new is not S.WAITING and event not in GONE_ON
    }
    assert {E.HOLD_GRANTED, E.HOLD_REFUSED, E.TIMEOUT_RUN, E.TIMEOUT_DEFER} <= leaving.keys()
    for event, effects in leaving.items():
        assert (F.RUN in effects) != (F.REFUSE in effects), event


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("event", PROLOGS)
def test_every_prolog_request_is_answered_or_waits(state: S, event: E) -> None:
    new, effects = step(state, event)
    answers = {F.RUN, F.REFUSE, F.REPEAT_REFUSAL} & set(effects)
    waits = {F.ASK_BANK, F.JOIN_QUESTION} & set(effects)
    assert len(answers) + len(waits) == 1
    assert bool(waits) == (new is S.WAITING)


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("event", [event for event in E if event in GONE_ON])
def test_every_other_message_is_acknowledged(state: S, event: E) -> None:
    if (state, event) in NEVER_CHOSEN:
        assert (state, event) not in TABLE
        return
    _, effects = step(state, event)
    acknowledging = {F.ACK, F.ACK_WHEN_SAFE, F.SEND_HOLD, F.SEND_ADJUST, F.SEND_END}
    assert len(acknowledging & set(effects)) == 1


def test_end_of_a_run_is_reported_unless_the_bank_holds_nothing() -> None:
    for state in S:
        assert (F.SEND_END in step(state, E.EPILOG)[1]) == (state is not S.ENDED)
        never_started = F.SEND_END in step(state, E.EPILOG_NEVER_STARTED)[1]
        assert never_started == (state not in (S.ENDED, S.REFUSED))


def test_deferred_run_is_never_forgotten_as_refused_without_its_end() -> None:
    """Report the end of a deferred run: the bank may have its hold."""
    targets = {
        event: effects
        for (state, event), (new, effects) in TABLE.items()
        if state is S.DEFERRED and new is S.REFUSED
    }
    assert targets == {E.EPILOG_NEVER_STARTED: (F.SEND_END,)}


@pytest.mark.parametrize("state", [S.STARTED, S.HELD])
def test_hold_refused_after_the_start_warns_and_leaves_the_run_without_hold(state: S) -> None:
    assert step(state, E.HOLD_REFUSED) == (S.WITHOUT_HOLD, (F.WARN,))


@pytest.mark.parametrize("event", PROLOGS)
def test_warning_for_a_prolog_after_the_end_says_that_the_run_has_ended(event: E) -> None:
    text = warning(S.ENDED, event, Occurrence("12.0", 0.0))
    assert text == "12.0 asks to start after it has ended: it may run"


@pytest.mark.parametrize(("state", "event"), WARNED)
def test_every_warning_names_the_run_and_claims_a_start_only_if_it_starts(
    state: S, event: E
) -> None:
    text = warning(state, event, Occurrence("12.0", 0.0))
    assert "12.0" in text
    starts = state not in (S.REFUSED, S.DEFERRED, S.ENDED) or F.RUN in step(state, event)[1]
    assert starts or not any(word in text for word in ("starts", " runs"))


def test_ended_is_final() -> None:
    assert {new for (state, _), (new, _) in TABLE.items() if state is S.ENDED} == {S.ENDED}


def test_unlisted_pair_changes_nothing() -> None:
    assert step(S.NEW, E.HOLD_GRANTED) == (S.NEW, ())


def test_every_state_event_and_effect_is_used() -> None:
    assert {new for new, _ in TABLE.values()} | {S.NEW} == set(S)
    assert {event for _, event in TABLE} == set(E)
    assert {effect for _, effects in TABLE.values() for effect in effects} == set(F)


def test_diagram_shows_changes_of_state_only() -> None:
    lines = state_diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert "    DEFERRED --> WAITING: PROLOG" in lines
    assert not any(line.split()[0] == line.split()[2].rstrip(":") for line in lines[1:])
