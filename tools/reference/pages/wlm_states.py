"""Reference page of the states of jobs and nodes in the workload manager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TypeVar

from fairbank.wlm.core import job_states, node_states
from fairbank.wlm.core.job_states import JobEvent, JobState
from fairbank.wlm.core.node_states import NodeCondition, NodeEvent

_JOB_EVENTS: Mapping[JobEvent, str] = {
    JobEvent.COMPLETED: "its script ends with exit code 0",
    JobEvent.CANCELLED: "a user, the bank, --kill-on-invalid-dep or InactiveLimit cancels it",
    JobEvent.FAILED: "its script ends otherwise, or its launch fails with --no-requeue",
    JobEvent.TIMEOUT: (
        "its time limit and OverTimeLimit have passed, its reservation ends, or its srun or salloc"
        " is gone (InactiveLimit)"
    ),
    JobEvent.OUT_OF_MEMORY: "its script was killed because of its memory",
    JobEvent.NODE_FAIL: "its node fails, with --no-requeue",
    JobEvent.PREEMPTED: "another job needs its nodes",
    JobEvent.DEADLINE: "it cannot end by its --deadline, or runs at it",
    JobEvent.ALLOCATED: "a pass starts it: the bank is asked, then its prolog runs",
    JobEvent.BEGUN: "its script begins",
    JobEvent.SUSPENDED: "`scontrol suspend`",
    JobEvent.RESUMED: "`scontrol resume`",
    JobEvent.REQUEUED: "it is requeued: by hand, RequeueExit, preemption, a failed node or launch",
    JobEvent.REQUEUED_HELD: "`scontrol requeuehold`",
    JobEvent.REQUEUED_SPECIAL: "RequeueExitHold, or `scontrol requeuehold State=SpecialExit`",
    JobEvent.CLEARED: "processes and epilogs have ended on all of its nodes",
    JobEvent.RESERVATION_DELETED: "the reservation that it requests ends or is deleted",
    JobEvent.RELEASED: "it is released",
}
_NODE_EVENTS: Mapping[NodeEvent, str] = {
    NodeEvent.REGISTERED: "it registers; it was not DOWN, or ReturnToService keeps it DOWN",
    NodeEvent.RETURNED: "it registers, and ReturnToService lets it return",
    NodeEvent.LACKING: "it registers with less than is configured",
    NodeEvent.SILENT: "it does not answer for SlurmdTimeout",
    NodeEvent.DRAINED: "State=DRAIN; a prolog or epilog fails; processes cannot be ended",
    NodeEvent.RESUMED: "State=RESUME, UNDRAIN or IDLE",
    NodeEvent.DOWN: "State=DOWN",
    NodeEvent.FAILED: "State=FAIL",
    NodeEvent.FUTURE: "State=FUTURE",
}


def wlm_states_page() -> str:
    """Return the page with both tables of transitions."""
    lines = [
        "# States of jobs and nodes",
        "",
        "The embedded workload manager keeps a state for each job and a condition for each node,",
        "apart from its jobs. A change that is not in these tables cannot happen.",
        "",
        "## A job",
        "",
        "Slurm's base state, then flags; `squeue` shows the first flag, if there is one.",
        "",
        *_table(job_states.TRANSITIONS, list(JobState), _JOB_EVENTS),
        "",
        "## A node",
        "",
        "`*`: it does not respond. UNKNOWN: it has not registered yet.",
        "",
        *_table(node_states.TRANSITIONS, list(NodeCondition), _NODE_EVENTS),
    ]
    return "\n".join(lines) + "\n"


S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


def _table(
    transitions: Mapping[tuple[S, E], S], order: list[S], events: Mapping[E, str]
) -> Iterator[str]:
    """Yield a row for each event and next state, with all states from which they lead there."""
    yield "| In state | when | goes to |"
    yield "| --- | --- | --- |"
    for event in dict.fromkeys([*events, *(event for _, event in transitions)]):
        text = events[event]
        for after in order:
            before = [state for state in order if transitions.get((state, event)) is after]
            if before:
                names = ", ".join(state.value for state in before)
                yield f"| {names} | {text} | {after.value} |"
