"""Tests of messages of nodes as events of the core."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.cluster.job import Run
from fairbank.wlm.controller.nodes.node_events import is_lost, registration_event, run_on_node
from fairbank.wlm.core.events import RunOnNode
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


CASES = {
    "prolog": (status("prolog"), RunOnNode(RUN, "starting")),
    "running": (status("running"), RunOnNode(RUN, "running")),
    "unkillable": (
        status("running", unkillable=(8, 9)),
        RunOnNode(RUN, "running", unkillable=(8, 9)),
    ),
    "failed script": (status("epilog", "exit", 256), RunOnNode(RUN, "ended", 256)),
    "time limit": (
        status("finished", "time_limit", 15, epilog_status=0),
        RunOnNode(RUN, "cleared", 15, is_late=True),
    ),
    "failed epilog": (
        status("finished", "exit", 0, epilog_status=256),
        RunOnNode(RUN, "cleared", has_epilog_failed=True),
    ),
    "killed step daemon": (
        status("epilog", "step_daemon_killed", None),
        RunOnNode(RUN, "ended", 9),
    ),
    "prolog that fails": (status("epilog", "prolog", None), RunOnNode(RUN, "starting")),
    "failed prolog": (
        status("finished", "prolog", None, epilog_status=0),
        RunOnNode(RUN, "cleared", failed="prolog"),
    ),
    "failed launch": (
        status("finished", "launch", None, epilog_status=0),
        RunOnNode(RUN, "cleared", failed="launch"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_change_of_a_run_and_registration_say_the_same(case: str) -> None:
    message, seen = CASES[case]
    assert run_on_node(message) == seen
    assert registration_event(registration(message)).runs == (seen,)


def test_run_that_was_lost_with_the_boot_of_its_node_is_not_there() -> None:
    lost = status("finished", "node_failure", None)
    assert is_lost(lost)
    registered = registration_event(registration(lost))
    assert (registered.runs, registered.lost) == ((), (RUN,))
