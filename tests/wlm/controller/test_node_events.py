"""Tests of messages of nodes as events of the core."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.cluster.job import Run
from fairbank.wlm.controller.nodes.node_events import registration_events, status_events
from fairbank.wlm.core.events import (
    NodeRegistered,
    ProcessesLeft,
    RunCleared,
    RunOnNode,
    RunStarted,
    ScriptEnded,
    StartFailed,
)
from fairbank.wlm.protocol.messages import Registration, RunOutcome, RunStatus

RUN = Run("lab", 7, 1_000)


def status(state: Any, cause: Any = None, status_: int | None = 0, **fields: Any) -> RunStatus:
    end = None if cause is None else RunOutcome(cause=cause, status=status_, ended=2_000.0)
    return RunStatus(run=RUN, state=state, end=end, **fields)


def registration(*runs: RunStatus) -> Registration:
    return Registration(
        node="n1",
        release="1",
        started=1.0,
        cpus=2,
        memory=100,
        free_memory=50,
        tmp=10,
        load=0.5,
        boot_time=1.0,
        boot_id="b",
        system="Linux",
        machine="x86_64",
        runs=runs,
    )


CASES: dict[str, tuple[RunStatus, list[Any], RunOnNode | None]] = {
    "prolog": (status("prolog"), [], RunOnNode(RUN, "starting")),
    "running": (status("running"), [RunStarted("n1", RUN)], RunOnNode(RUN, "running")),
    "failed script": (
        status("epilog", "exit", 256),
        [ScriptEnded("n1", RUN, 256)],
        RunOnNode(RUN, "ended", 256),
    ),
    "time limit": (
        status("finished", "time_limit", 15, epilog_status=0),
        [ScriptEnded("n1", RUN, 15, is_late=True), RunCleared("n1", RUN)],
        RunOnNode(RUN, "cleared", 15, is_late=True),
    ),
    "killed step daemon": (
        status("epilog", "step_daemon_killed", None),
        [ScriptEnded("n1", RUN, 9)],
        RunOnNode(RUN, "ended", 9),
    ),
    "prolog that fails": (status("epilog", "prolog", None), [], RunOnNode(RUN, "starting")),
    "failed prolog": (
        status("finished", "prolog", None, epilog_status=0),
        [StartFailed("n1", RUN, is_prolog=True)],
        RunOnNode(RUN, "cleared", failed="prolog"),
    ),
    "failed launch": (
        status("finished", "launch", None, epilog_status=0),
        [StartFailed("n1", RUN)],
        RunOnNode(RUN, "cleared", failed="launch"),
    ),
    "boot": (status("finished", "node_failure", None), [], None),
}


@pytest.mark.parametrize("case", CASES)
def test_change_of_a_run_and_registration_say_the_same(case: str) -> None:
    message, events, on_node = CASES[case]
    assert [*status_events("n1", message)] == events
    (registered,) = registration_events(registration(message))
    assert isinstance(registered, NodeRegistered)
    assert registered.runs == (() if on_node is None else (on_node,))


def test_node_that_must_be_drained_says_so_also_when_it_registers() -> None:
    failed = status("finished", "exit", 0, epilog_status=256)
    stuck = status("running", unkillable=(8, 9))
    events = [*registration_events(registration(failed, stuck))]
    assert events[:-1] == [
        ScriptEnded("n1", RUN, 0),
        RunCleared("n1", RUN, has_epilog_failed=True),
        ProcessesLeft("n1", RUN, (8, 9)),
        RunStarted("n1", RUN),
    ]
    assert isinstance(events[-1], NodeRegistered)
