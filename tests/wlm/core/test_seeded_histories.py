"""Histories from seeds: like the random ones, and denser, since nothing has to be made smaller."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from fairbank.cluster.partition_rules import PartitionState, PreemptMode
from tests.wlm.core.test_random_histories import (
    ACTIONS,
    ADMINISTRATION,
    FAULTS,
    KINDS,
    STEPS,
    Histories,
)
from tests.wlm.core.world import ALICE, BOB, OPERATOR


def draw_submission(rng: Random) -> dict[str, Any]:
    return {
        "caller": rng.choice([ALICE, BOB]),
        "cpus": rng.randint(1, 4),
        "nodes": rng.choice([1, 1, 1, 2, 3]),
        "limit": rng.choice([60, 600, 3_600]),
        "partition": rng.choice(["", "", "urgent", "night"]),
        "delay": rng.choice([0, 0, 0, 100]),
        "deadline": rng.choice([None, None, None, 700]),
        "array": rng.choice([None, None, None, "0-3%2", "1,5"]),
        "flags": {*rng.choice([(), (), ("held",), ("no_kill",), ("kill_invalid",)])},
        "may_requeue": rng.random() < 0.7,
        "kind": rng.choice(KINDS),
        "reservation": rng.choice([None, None, None, "maint"]),
        "parent": rng.choice([None, None, rng.randrange(50)]),
    }


def draw_works(rng: Random) -> list[tuple[int, str, int]]:
    return [(rng.randrange(50), rng.choice(STEPS), rng.choice([0, 0, 1, 7, 8])) for _ in range(4)]


def draw_disturbance(rng: Random) -> dict[str, Any]:
    return {
        "fault": rng.choice(FAULTS),
        "pick": rng.randrange(50),
        "event": rng.choice(ADMINISTRATION),
        "state": rng.choice([PartitionState.UP] * 4 + list(PartitionState)),
    }


def take_step(history: Histories, rng: Random) -> None:
    """Let one thing happen; more often what brings jobs further."""
    kind = rng.choices(
        ("submit", "change", "plan", "verdict", "work", "disturb", "advance"),
        (15, 15, 15, 5, 35, 8, 7),
    )[0]
    match kind:
        case "submit" if len(history.world.core.state.jobs) < 40:
            history.submit(**draw_submission(rng))
        case "change":
            caller = rng.choice([ALICE, ALICE, BOB, OPERATOR])
            history.change(caller=caller, pick=rng.randrange(50), action=rng.choice(ACTIONS))
        case "plan":
            history.plan(begins=rng.random() < 0.7)
        case "verdict" if history.world.prologs:
            action = rng.choice(["run", "run", "hold", "cancel"])
            history.verdict(action=action, pick=rng.randrange(50))
        case "work":
            history.work(works=draw_works(rng))
        case "disturb":
            history.disturb(**draw_disturbance(rng))
        case "advance":
            history.advance(seconds=rng.choice([1, 30, 100, 700]))


def play(seed: int, steps: int) -> None:
    rng = Random(seed)
    history = Histories()
    history.begin(
        has_bank=rng.random() < 0.5,
        preempts=rng.choice([PreemptMode.OFF, PreemptMode.CANCEL, PreemptMode.REQUEUE]),
        grace=rng.choice([0, 30]),
        service=rng.randrange(3),
        complete_wait=rng.choice([0, 0, 20]),
        has_limit=rng.random() < 0.5,
    )
    for _ in range(steps):
        take_step(history, rng)
    history.teardown()


@pytest.mark.parametrize("seed", range(20))
def test_invariants_hold_in_seeded_histories(seed: int) -> None:
    play(seed, steps=150)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_invariants_hold_in_many_seeded_histories(part: int) -> None:
    for seed in range(1_000 + 100 * part, 1_100 + 100 * part):
        play(seed, steps=200)
