"""Helpers for short scenarios of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.run_states import AgentRunState
from tests.agent.bank import InProcessBank
from tests.agent.plugin import prolog_request
from tests.agent.world import World

CREDIT = 100 * 60


def world_with(tmp_path: Path, bank: InProcessBank, **terms: object) -> World:
    fields: Any = {"patience": 4, **terms}
    return World(tmp_path, bank, PartitionTerms(**fields))


def state_of(world: World, job: int) -> AgentRunState | None:
    known = world.engine.flow.memory.get(str(prolog_request(job).run))
    return known.state if known else None


def verdict(world: World) -> str:
    world.read_replies()
    ((_, reply),) = world.verdicts
    world.verdicts.clear()
    return reply.action


def lose_request(world: World) -> None:
    assert world.send()
    world.finish_request(is_received=False)
