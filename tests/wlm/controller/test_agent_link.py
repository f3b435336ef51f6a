"""Link to the agent: messages in the plug-in's form, and a real agent with a real bank."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fairbank.agent.protocol import EpilogEvent
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.tres import parse_weights
from fairbank.slurm.parsers.squeue import COMMENT_PREFIX
from fairbank.wlm.controller import agent_link
from fairbank.wlm.controller.agent_link import AgentLink, plugin_message
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.effects import AgentMessage
from fairbank.wlm.core.starts import NO_ANSWER
from tests.agent.conftest import SU, Site
from tests.agent.plugin import ACCOUNT, CLUSTER, PARTITION
from tests.agent.running_agent import RunningAgent, agent_at
from tests.support.conditions import PAUSE_SECONDS
from tests.support.server import run_bank
from tests.wlm.core.world import World, named


class LinkedWorld(World):
    """World whose messages to the agent go through a link. It starts jobs with one CPU an hour."""

    link: AgentLink | None = None

    def __init__(self) -> None:
        self.sent: list[AgentMessage] = []
        rules = PartitionRules(name=PARTITION, is_default=True)
        super().__init__(rules, socket="agent", cluster_name=CLUSTER)

    def _receive_agent(self, message: AgentMessage) -> None:
        self.sent.append(message)
        if self.link is not None:
            self.link.send(message)

    @asynccontextmanager
    async def linked(self, path: Path, *, holds: bool = True) -> AsyncIterator[None]:
        self.link = AgentLink(
            str(path),
            state=lambda: self.core.state,
            stored=lambda: self.core.state.messages,
            handle=self.event,
            now=lambda: self.now.mono,
            holds_without_agent=holds,
        )
        task = asyncio.get_running_loop().create_task(self.link.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    @property
    def is_linked(self) -> bool:
        return self.link is not None and self.link.is_connected

    def submit_one(self, **fields: Any) -> int:
        number = self.submit(account=ACCOUNT, limit=3_600, **fields)
        self.settle()
        return int(number)


async def until(condition: Callable[[], object], what: str) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(PAUSE_SECONDS)

    try:
        await asyncio.wait_for(wait(), 30)
    except TimeoutError:
        raise TimeoutError(f"waited in vain for {what}") from None


@pytest.fixture
def site() -> Iterator[Site]:
    with run_bank() as server:
        yield Site(server)


@pytest.fixture
def agent(site: Site) -> Iterator[RunningAgent]:
    with agent_at(site.address) as running:
        yield running


def test_message_has_the_billing_and_the_tres_of_the_run() -> None:
    rules = PartitionRules(name="main", is_default=True, weights=parse_weights("cpu=2,mem=1G"))
    world = World(rules, socket="agent")
    world.submit(cpus=3, memory=512, limit=600, name="train", qos="")
    world.settle()
    message = plugin_message(world.prologs[0], world.core.state)
    # 3 CPUs at 2 and half a GiB at 1 are 6.5.
    assert (message.billing, message.tres) == (Fraction("6.5"), "cpu=3,node=1,mem=512M,billing=6")
    assert (message.limit_seconds, message.name, message.qos) == (600, "train", None)
    assert message.batch


def test_job_of_srun_or_salloc_is_no_batch_job_for_the_agent() -> None:
    world = LinkedWorld()
    world.submit_one(script="")
    assert not plugin_message(world.sent[0], world.core.state).batch


def test_end_of_a_run_that_never_began_says_so() -> None:
    world = LinkedWorld()
    number = world.submit_one()
    world.request(ev.CancelJob(named(number)))
    message = plugin_message(world.sent[-1], world.core.state)
    assert isinstance(message, EpilogEvent)
    assert (message.begun, message.elapsed_seconds, message.state) == (False, 0, "CANCELLED")


@pytest.mark.slow
def test_run_is_held_and_charged_through_the_agent(site: Site, agent: RunningAgent) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)

    world = LinkedWorld()

    async def live() -> None:
        async with world.linked(agent.socket):
            number = world.submit_one(cpus=2)
            await until(lambda: world.core.state.messages == {}, "the verdict")
            assert site.sums(allocation) == (0, 2 * SU)
            world.begin_all()
            world.advance(600)
            world.end(number)
            await until(lambda: world.core.state.messages == {}, "the acknowledgement")

    asyncio.run(live())
    agent.wait_until_empty()
    assert site.sums(allocation) == (20, 0)
    world.check_at_rest()


@pytest.mark.slow
def test_job_without_credit_is_held_with_the_remedy(site: Site, agent: RunningAgent) -> None:
    site.project(ACCOUNT, SU)
    world = LinkedWorld()

    async def live() -> None:
        async with world.linked(agent.socket):
            number = world.submit_one(cpus=2)
            await until(lambda: world.reason(number) == "Allocation_exhausted", "the refusal")
            comment = world.job(number).admin_comment
            assert comment.startswith(COMMENT_PREFIX)
            assert "short by 1 SU" in comment

    asyncio.run(live())


@pytest.mark.slow
def test_messages_survive_an_agent_that_is_killed(site: Site, agent: RunningAgent) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    world = LinkedWorld()

    async def live() -> None:
        async with world.linked(agent.socket):
            number = world.submit_one()
            await until(lambda: world.core.state.messages == {}, "the verdict")
            world.begin_all()
            agent.kill()
            world.advance(1_800)
            world.end(number)
            await until(lambda: not world.is_linked, "the lost connection")
            agent.start()
            await until(lambda: world.core.state.messages == {}, "the acknowledgement")

    asyncio.run(live())
    agent.wait_until_empty()
    assert site.sums(allocation) == (30, 0)


@pytest.mark.parametrize("holds", [True, False])
def test_run_without_an_agent_is_decided_after_the_time_limit(tmp_path: Path, holds: bool) -> None:
    world = LinkedWorld()

    async def live() -> None:
        async with world.linked(tmp_path / "none.sock", holds=holds):
            number = world.submit_one()
            world.advance(agent_link.PROLOG_TIMEOUT_SECONDS - 1)
            assert world.reason(number) == "Prolog"
            world.advance(1)
            await until(lambda: not world.core.state.messages or holds, "a decision")
            expected = NO_ANSWER if holds else "None"
            await until(lambda: world.reason(number) == expected, expected)
            world.begin_all()
            assert (world.state(number) == "RUNNING") is not holds

    asyncio.run(live())


def test_time_for_a_verdict_counts_from_the_commit_of_the_question(tmp_path: Path) -> None:
    greetings: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greetings.append(await reader.read(4))
        writer.close()

    async def live() -> None:
        world = LinkedWorld()
        number = world.submit_one()
        world.advance(agent_link.PROLOG_TIMEOUT_SECONDS)  # the commit takes that long
        server = await asyncio.start_unix_server(refuse, tmp_path / "agent.sock")
        async with server, world.linked(tmp_path / "agent.sock"):
            assert world.link is not None
            world.link.send(world.sent[0])
            # Between two attempts to connect, the link looks for late verdicts.
            await until(lambda: len(greetings) > 1, "the second attempt to connect")
            assert world.reason(number) == "Prolog"
            world.advance(agent_link.PROLOG_TIMEOUT_SECONDS)
            await until(lambda: world.reason(number) == NO_ANSWER, "a decision")

    asyncio.run(live())


def test_garbage_from_the_agent_closes_the_connection(tmp_path: Path) -> None:
    closed = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(b"\x00\x00\x00\x04oops")
        while await reader.read(1_000):
            pass
        closed.append(True)
        writer.close()

    async def live() -> None:
        server = await asyncio.start_unix_server(answer, tmp_path / "agent.sock")
        world = LinkedWorld()
        async with server, world.linked(tmp_path / "agent.sock"):
            await until(lambda: closed, "the end of the connection")
            assert not world.is_linked

    asyncio.run(live())
