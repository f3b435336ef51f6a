"""States of a job, and the table of their transitions.

A state is Slurm's base state with its flags. Pairs that are not in the table are errors of the
caller: it chooses the event by what it knows. docs/reference/wlm-states.md shows the table.
Source: docs/reference/slurm-rules.md, "States of jobs".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto

from fairbank.core.errors import Conflict
from fairbank.wlm.protocol.frames import OUT_OF_MEMORY_STATUS
from fairbank.wlm.protocol.messages import EndCause


class JobState(Enum):
    """State of a job: Slurm's base state, then its flags."""

    PENDING = "PENDING"
    REQUEUE_HOLD = "PENDING REQUEUE_HOLD"
    SPECIAL_EXIT = "PENDING SPECIAL_EXIT"
    RESV_DEL_HOLD = "PENDING RESV_DEL_HOLD"
    # Requeued, while its last run is being cleaned up.
    CLEANING = "PENDING COMPLETING REQUEUED"
    CLEANING_HOLD = "PENDING COMPLETING REQUEUE_HOLD"
    CLEANING_SPECIAL = "PENDING COMPLETING SPECIAL_EXIT"
    CONFIGURING = "RUNNING CONFIGURING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    # Ended, while processes and epilogs are left on some of its nodes.
    COMPLETED_COMPLETING = "COMPLETED COMPLETING"
    CANCELLED_COMPLETING = "CANCELLED COMPLETING"
    FAILED_COMPLETING = "FAILED COMPLETING"
    TIMEOUT_COMPLETING = "TIMEOUT COMPLETING"
    NODE_FAIL_COMPLETING = "NODE_FAIL COMPLETING"
    OUT_OF_MEMORY_COMPLETING = "OUT_OF_MEMORY COMPLETING"
    PREEMPTED_COMPLETING = "PREEMPTED COMPLETING"
    DEADLINE_COMPLETING = "DEADLINE COMPLETING"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    PREEMPTED = "PREEMPTED"
    DEADLINE = "DEADLINE"

    # The hash of Enum is a function in Python, of which each pass would make thousands of calls.
    __hash__ = object.__hash__

    @property
    def base(self) -> str:
        """Slurm's base state."""
        return _WORDS[self][0]

    @property
    def flags(self) -> Collection[str]:
        return _WORDS[self][1:]

    @property
    def shown(self) -> str:
        """State that squeue shows: the first flag in Slurm's order, else the base state."""
        return next((flag for flag in _SHOWN if flag in self.flags), self.base)

    @property
    def is_completing(self) -> bool:
        """True while nodes are being cleaned up."""
        return self in _CLEARED

    @property
    def is_final(self) -> bool:
        """True if the job has ended and has no nodes any more."""
        return self in ENDED

    @property
    def has_ended(self) -> bool:
        """True if the job has ended, whether or not nodes are being cleaned up."""
        return self.is_final or _CLEARED.get(self) in ENDED

    @property
    def is_waiting(self) -> bool:
        """True for a pending job without nodes."""
        return self in WAITING


_WORDS: Mapping[JobState, Sequence[str]] = {state: state.value.split() for state in JobState}
_SHOWN = (
    "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD",
)  # fmt: skip


class JobEvent(Enum):
    """Event in the life of a job. The first ones end it."""

    COMPLETED = auto()
    CANCELLED = auto()
    FAILED = auto()
    TIMEOUT = auto()
    NODE_FAIL = auto()
    OUT_OF_MEMORY = auto()
    PREEMPTED = auto()
    DEADLINE = auto()
    ALLOCATED = auto()
    BEGUN = auto()  # the batch script runs, or there is none
    SUSPENDED = auto()
    RESUMED = auto()
    REQUEUED = auto()
    REQUEUED_HELD = auto()
    REQUEUED_SPECIAL = auto()  # its exit code is in RequeueExitHold
    CLEARED = auto()  # no node has processes or an epilog of its run any more
    RESERVATION_DELETED = auto()  # the one that it requests
    RELEASED = auto()


S, E = JobState, JobEvent

_HELD = frozenset({S.REQUEUE_HOLD, S.SPECIAL_EXIT, S.RESV_DEL_HOLD})
WAITING = _HELD | {S.PENDING}
ENDED = frozenset(
    {
        S.COMPLETED, S.CANCELLED, S.FAILED, S.TIMEOUT, S.NODE_FAIL, S.OUT_OF_MEMORY, S.PREEMPTED,
        S.DEADLINE,
    }
)  # fmt: skip
_CLEARED = {
    S.CLEANING: S.PENDING,
    S.CLEANING_HOLD: S.REQUEUE_HOLD,
    S.CLEANING_SPECIAL: S.SPECIAL_EXIT,
    **{S(f"{state.value} COMPLETING"): state for state in ENDED},
}
BEGUN = frozenset({S.RUNNING, S.SUSPENDED})
"""States of a job that has begun on its batch node, and has not ended."""
_WITH_NODES = BEGUN | {S.CONFIGURING}
_COMPLETING = frozenset(state for state, cleared in _CLEARED.items() if cleared in ENDED)
_CLEANING = _CLEARED.keys() - _COMPLETING

_REQUEUES = {  # the state after the clean-up, and during it
    E.REQUEUED: (S.PENDING, S.CLEANING),
    E.REQUEUED_HELD: (S.REQUEUE_HOLD, S.CLEANING_HOLD),
    E.REQUEUED_SPECIAL: (S.SPECIAL_EXIT, S.CLEANING_SPECIAL),
}
_ENDS_OF_WAITING = (E.CANCELLED, E.DEADLINE)
_ENDS_OF_RUNS = (*_ENDS_OF_WAITING, E.FAILED, E.NODE_FAIL, E.PREEMPTED)
_ENDS_OF_SCRIPTS = (E.COMPLETED, E.TIMEOUT, E.OUT_OF_MEMORY)


def _ended(event: JobEvent) -> JobState:
    return S[event.name]


def _completing(event: JobEvent) -> JobState:
    return S[f"{event.name}_COMPLETING"]


ROWS: Sequence[tuple[Collection[JobState], JobEvent, JobState]] = (
    ({S.PENDING}, E.ALLOCATED, S.CONFIGURING),
    ({S.CONFIGURING}, E.BEGUN, S.RUNNING),
    ({S.RUNNING}, E.SUSPENDED, S.SUSPENDED),
    ({S.SUSPENDED}, E.RESUMED, S.RUNNING),
    *((WAITING, event, _ended(event)) for event in _ENDS_OF_WAITING),
    *((_CLEANING, event, _completing(event)) for event in _ENDS_OF_WAITING),
    *((_WITH_NODES, event, _completing(event)) for event in _ENDS_OF_RUNS),
    # Only a script that began can complete, and only then its limit counts.
    *((BEGUN, event, _completing(event)) for event in _ENDS_OF_SCRIPTS),
    # A job that ends because of a node may not be requeued, or it would have been.
    *(
        ((_WITH_NODES | _COMPLETING) - {S.NODE_FAIL_COMPLETING}, event, during)
        for event, (_, during) in _REQUEUES.items()
    ),
    *((ENDED - {S.NODE_FAIL}, event, after) for event, (after, _) in _REQUEUES.items()),
    *(({state}, E.CLEARED, cleared) for state, cleared in _CLEARED.items()),
    ({S.PENDING}, E.RESERVATION_DELETED, S.RESV_DEL_HOLD),
    (_HELD, E.RELEASED, S.PENDING),
    ({S.CLEANING_HOLD, S.CLEANING_SPECIAL}, E.RELEASED, S.CLEANING),
)
TRANSITIONS = {(before, event): after for states, event, after in ROWS for before in states}


def next_state(state: JobState, event: JobEvent) -> JobState:
    """Return the state after an event. Raises Conflict if the state does not allow it."""
    after = TRANSITIONS.get((state, event))
    if after is None:
        raise Conflict(
            f"a job that is {state.shown} cannot become {event.name}",
            field="job",
            remedy="show its state: scontrol show job",
        )
    return after


RAISED_SIGNAL = "RaisedSignal"


def end_of_script(status: int, cause: EndCause) -> tuple[JobEvent, str]:
    """Return the event and Slurm's reason of a batch script that ended by itself.

    Args:
        status: exit status of wait(2): exit code times 256, plus the signal.
        cause: what its node reports as the cause.
    """
    if cause == "time_limit":
        return E.TIMEOUT, "TimeLimit"
    if cause == "step_daemon_killed":  # the status says nothing of the script
        return E.FAILED, "SystemFailure"
    if status == OUT_OF_MEMORY_STATUS:
        return E.OUT_OF_MEMORY, "OutOfMemory"
    code, signal = divmod(status, 256)
    if code:
        return E.FAILED, "NonZeroExitCode"
    return (E.FAILED, RAISED_SIGNAL) if signal else (E.COMPLETED, "None")
