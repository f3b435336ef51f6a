"""State machine of a run in the agent: one table of (state, event) -> (state, effects).

Conditions (bank reachable, policy of the partition) choose the event before the table is read;
`agent.engine` makes the events and carries out the effects. Nothing here does I/O.

Invariants
1. slurmctld waits for a verdict only while the run is WAITING. Each row that leaves WAITING gives
   it: RUN or REFUSE, except where the message itself shows that slurmctld has gone on.
2. A run that the bank may hold credit for is never forgotten: from every state except REFUSED and
   ENDED its end is reported, so each hold is closed exactly once.
3. REFUSED means that the bank holds nothing for the run, or has the report that closes its hold.
   DEFERRED means a refusal without the bank's answer: it may hold credit.
4. A refusal is stored before it is sent, so a repeated request gets the same refusal from the next
   agent too. RUN may be sent at once: if the agent forgets it, the bank still has the hold.
5. ENDED is final. A pair that is not in the table changes nothing, because messages and answers
   may arrive late or twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto


class AgentRunState(Enum):
    """State of a run, as far as the agent knows; the values are stored in the outbox."""

    NEW = "new"  # unknown to the agent; never stored
    WAITING = "waiting"  # slurmctld waits for the bank's answer
    HELD = "held"  # the run started, and the bank holds its price
    STARTED = "started"  # the run started, and the bank has not answered yet
    WITHOUT_HOLD = "without hold"  # the run started, and the bank holds nothing for it
    REFUSED = "refused"  # refused, or ended before it started
    DEFERRED = "deferred"  # refused until the bank is back; the bank may hold its price
    ENDED = "ended"  # the end was reported by slurmctld


class AgentEvent(Enum):
    """Event of a run: a message of slurmctld, a decision of the agent, or a result of the bank."""

    PROLOG = auto()
    PROLOG_IN_OUTAGE = auto()  # the bank is down, which matters for a run deferred before
    PROLOG_UNLIMITED_RUN = auto()  # no time limit, and the partition has unbillable = "run"
    PROLOG_UNLIMITED_REFUSE = auto()  # no time limit, and unbillable = "refuse"
    LIMIT_SAME = auto()
    LIMIT_CHANGED = auto()
    LIMIT_NONE = auto()  # the run has no time limit any more
    EPILOG = auto()
    EPILOG_NEVER_STARTED = auto()
    TIMEOUT_RUN = auto()  # no answer in time, and the outage policy lets the run start
    TIMEOUT_DEFER = auto()  # no answer in time, and the outage policy defers the run
    OPTIMISTIC_START = auto()  # the credit that was last known pays for the run many times
    HOLD_GRANTED = auto()
    HOLD_EXISTS = auto()  # the bank has a hold with other content: adjust it
    HOLD_LAPSED = auto()  # the run's hold has expired: the run was known to the bank before
    HOLD_REFUSED = auto()
    HOLD_UNPRICED_RUN = auto()  # the bank cannot price the run; unbillable = "run"
    HOLD_UNPRICED_REFUSE = auto()
    # The bank knows that this start was given up, from an outbox that has been lost since.
    RUN_NEVER_STARTED = auto()
    RUN_CLOSED = auto()  # the bank has charged or released the run
    ADJUST_NO_HOLD = auto()
    ADJUST_REFUSED = auto()
    END_TOO_EARLY = auto()  # the end is in the future by the bank's clock
    END_REFUSED = auto()


class AgentEffect(Enum):
    """Effect for the engine to carry out."""

    WARN = auto()
    INCIDENT = auto()  # count the run as one without a hold, for `fairbank agent status`
    ASK_BANK = auto()  # send a hold report before all others, and let slurmctld wait for its result
    JOIN_QUESTION = auto()  # let slurmctld wait for the hold report that is on its way
    DEPRIORITISE = auto()  # slurmctld no longer waits for the hold report
    WITHDRAW = auto()  # take the hold report back if it was not sent
    SEND_HOLD = auto()
    SEND_ADJUST = auto()
    SEND_END = auto()
    RESEND_AS_ADJUST = auto()
    RESEND_AS_HOLD = auto()
    RETRY_LATER = auto()
    CHECK_CLOCK = auto()
    RUN = auto()
    REFUSE = auto()
    REPEAT_REFUSAL = auto()
    ACK = auto()
    ACK_WHEN_SAFE = auto()  # acknowledge once the end report is stored or received


S = AgentRunState
E = AgentEvent
F = AgentEffect
ALL = frozenset(S)
STARTED_STATES = frozenset({S.HELD, S.STARTED, S.WITHOUT_HOLD})
PROLOGS = (E.PROLOG, E.PROLOG_IN_OUTAGE, E.PROLOG_UNLIMITED_RUN, E.PROLOG_UNLIMITED_REFUSE)
_LIMITS = (E.LIMIT_SAME, E.LIMIT_CHANGED, E.LIMIT_NONE)
_REFUSALS = (E.HOLD_REFUSED, E.HOLD_UNPRICED_REFUSE, E.RUN_NEVER_STARTED)

Row = tuple[frozenset[S] | set[S], Sequence[E], S | None, tuple[F, ...]]

# Columns: states, events, next state (None: the same), effects in the order of carrying them out.
ROWS: Sequence[Row] = (
    # --- slurmctld asks whether the run may start
    ({S.NEW, S.DEFERRED}, (E.PROLOG,), S.WAITING, (F.ASK_BANK,)),
    # Also in an outage a new run waits: the bank may come back within the partition's patience. If
    # that is over already, the engine decides at once, by `TIMEOUT_RUN` or `TIMEOUT_DEFER`.
    ({S.NEW}, (E.PROLOG_IN_OUTAGE,), S.WAITING, (F.ASK_BANK,)),
    # The plug-in missed the refusal, and the bank is still away.
    ({S.DEFERRED}, (E.PROLOG_IN_OUTAGE,), None, (F.REPEAT_REFUSAL,)),
    ({S.NEW}, (E.PROLOG_UNLIMITED_RUN,), S.WITHOUT_HOLD, (F.WARN, F.INCIDENT, F.RUN)),
    ({S.NEW}, (E.PROLOG_UNLIMITED_REFUSE,), S.REFUSED, (F.REFUSE,)),
    # Not REFUSED: the first request may have reached the bank, so the end must be reported.
    ({S.DEFERRED}, (E.PROLOG_UNLIMITED_RUN,), S.WITHOUT_HOLD, (F.WARN, F.INCIDENT, F.RUN)),
    ({S.DEFERRED}, (E.PROLOG_UNLIMITED_REFUSE,), S.DEFERRED, (F.REFUSE,)),
    # slurmctld or the agent restarted: the same answer again.
    ({S.WAITING}, PROLOGS, None, (F.JOIN_QUESTION,)),
    ({S.REFUSED}, PROLOGS, None, (F.REPEAT_REFUSAL,)),
    (STARTED_STATES, PROLOGS, None, (F.RUN,)),
    # It ran and is charged. Refused, it would be requeued and run once more.
    ({S.ENDED}, PROLOGS, None, (F.WARN, F.RUN)),
    # --- the agent decides without the bank
    ({S.WAITING}, (E.OPTIMISTIC_START, E.TIMEOUT_RUN), S.STARTED, (F.RUN, F.DEPRIORITISE)),
    ({S.WAITING}, (E.TIMEOUT_DEFER,), S.DEFERRED, (F.WITHDRAW, F.REFUSE)),
    # --- result of a hold report
    ({S.WAITING, S.STARTED}, (E.HOLD_EXISTS,), S.HELD, (F.RUN, F.RESEND_AS_ADJUST)),
    ({S.WITHOUT_HOLD}, (E.HOLD_EXISTS,), S.HELD, ()),
    ({S.WAITING, S.STARTED, S.WITHOUT_HOLD}, (E.HOLD_GRANTED,), S.HELD, (F.RUN,)),
    ({S.WAITING, S.STARTED, S.WITHOUT_HOLD}, (E.HOLD_LAPSED,), S.HELD, (F.WARN, F.RUN)),
    # The run started under an agent whose outbox was lost.
    ({S.WAITING, S.STARTED, S.WITHOUT_HOLD}, (E.RUN_CLOSED,), S.ENDED, (F.WARN, F.RUN)),
    (ALL - {S.WAITING, S.STARTED, S.WITHOUT_HOLD}, (E.HOLD_LAPSED, E.RUN_CLOSED), None, (F.WARN,)),
    ({S.WAITING}, _REFUSALS, S.REFUSED, (F.REFUSE,)),
    ({S.WAITING}, (E.HOLD_UNPRICED_RUN,), S.WITHOUT_HOLD, (F.WARN, F.INCIDENT, F.RUN)),
    # A refusal cannot stop a run that has started. Its end is reported all the same. HELD too: its
    # limit was removed while the hold report was on the way, or an adjust was resent as a hold.
    ({S.STARTED, S.HELD}, (E.HOLD_REFUSED, E.RUN_NEVER_STARTED), S.WITHOUT_HOLD, (F.WARN,)),
    (
        {S.STARTED, S.HELD},
        (E.HOLD_UNPRICED_RUN, E.HOLD_UNPRICED_REFUSE),
        S.WITHOUT_HOLD,
        (F.WARN, F.INCIDENT),
    ),
    # --- the time limit changed, or a new connection tells about a run that has started
    ({S.ENDED}, _LIMITS, None, (F.ACK,)),
    (STARTED_STATES, (E.LIMIT_SAME,), None, (F.ACK,)),
    ({S.WAITING}, (E.LIMIT_SAME,), S.STARTED, (F.ACK,)),  # its hold report is on the way
    ({S.HELD}, (E.LIMIT_CHANGED,), S.HELD, (F.SEND_ADJUST,)),
    ({S.WAITING, S.STARTED}, (E.LIMIT_CHANGED,), S.STARTED, (F.SEND_ADJUST,)),
    # It runs, though this agent let it not: another agent did, or an operator.
    ({S.NEW, S.REFUSED, S.DEFERRED}, (E.LIMIT_CHANGED,), S.STARTED, (F.SEND_HOLD,)),
    ({S.WITHOUT_HOLD}, (E.LIMIT_CHANGED,), S.STARTED, (F.SEND_HOLD,)),
    ({S.WAITING, S.HELD, S.STARTED}, (E.LIMIT_NONE,), S.HELD, (F.WARN, F.ACK)),
    (
        {S.NEW, S.REFUSED, S.DEFERRED, S.WITHOUT_HOLD},
        (E.LIMIT_NONE,),
        S.WITHOUT_HOLD,
        (F.WARN, F.ACK),
    ),
    (ALL, (E.ADJUST_NO_HOLD,), None, (F.RESEND_AS_HOLD,)),
    (ALL, (E.ADJUST_REFUSED,), None, (F.WARN,)),
    # --- the run ended
    (ALL - {S.ENDED}, (E.EPILOG,), S.ENDED, (F.CHECK_CLOCK, F.SEND_END)),
    # Not ENDED: a slurmctld that is killed before it saves this end asks again. If the run started
    # then, it would not be charged. A requeued job comes as another run.
    (ALL - {S.ENDED, S.REFUSED}, (E.EPILOG_NEVER_STARTED,), S.REFUSED, (F.SEND_END,)),
    ({S.REFUSED, S.ENDED}, (E.EPILOG_NEVER_STARTED,), None, (F.ACK_WHEN_SAFE,)),
    ({S.ENDED}, (E.EPILOG,), None, (F.ACK_WHEN_SAFE,)),
    (ALL, (E.END_TOO_EARLY,), None, (F.WARN, F.RETRY_LATER)),
    (ALL, (E.END_REFUSED,), None, (F.WARN,)),
)


TABLE: Mapping[tuple[S, E], tuple[S, tuple[F, ...]]] = {
    (state, event): (target or state, effects)
    for states, events, target, effects in ROWS
    for state in states
    for event in events
}


def step(state: S, event: E) -> tuple[S, tuple[F, ...]]:
    """Return the next state and the effects. A pair that is not listed changes nothing."""
    return TABLE.get((state, event), (state, ()))


def state_diagram() -> str:
    """Return the changes of state in Mermaid's notation; docs/reference/agent.md includes it."""
    order = [state.name for state in AgentRunState]
    events: dict[tuple[str, str], list[str]] = {}
    for (old, event), (new, _) in TABLE.items():
        if old is not new:
            events.setdefault((old.name, new.name), []).append(event.name)
    ordered = sorted(events, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))
    arrows = [f"    {old} --> {new}: {', '.join(sorted(events[old, new]))}" for old, new in ordered]
    return "\n".join(["stateDiagram-v2", "    [*] --> NEW", *arrows, "    ENDED --> [*]"])
