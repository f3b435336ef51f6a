"""What the small scenes of the core share."""

from __future__ import annotations

from pathlib import Path

from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.run_states import AgentRunState
from tests.agent.bank import InProcessBank
from tests.agent.plugin import asks
from tests.agent.world import World

CREDIT = 100 * 60


def world_with(tmp_path: Path, bank: InProcessBank, **terms: object) -> World:
    return World(tmp_path, bank, PartitionTerms(**{"patience": 4, **terms}))  # type: ignore[arg-type]


def state_of(world: World, job: int) -> AgentRunState | None:
    known = world.engine.flow.memory.get(str(asks(job).run))
    return known.state if known else None


def verdict(world: World) -> str:
    world.listen()
    ((_, said),) = world.settled
    world.settled.clear()
    return said.action


def lose_a_request(world: World) -> None:
    assert world.send()
    world.arrive(reaches=False)
