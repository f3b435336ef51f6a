"""Rights in the answers to commands: jobs of another user, operators, PrivateData."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import FairbankError, Forbidden
from fairbank.wlm.controller.commands.answers import CommandAnswers
from fairbank.wlm.controller.commands.submissions import Submitter
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.nodes.node_link import NodeLinks
from fairbank.wlm.controller.state_store import StateStore
from fairbank.wlm.core.events import NodeRegistered
from fairbank.wlm.core.settings import DaemonSettings, WlmSettings
from fairbank.wlm.protocol import commands as cmd
from tests.wlm.core.world import ALICE, BOB, OPERATOR

NODES = (Node(name="n1", cpus=4, memory=1_000),)
SETTINGS = WlmSettings(
    operators=frozenset({OPERATOR.name}),
    nodes=NODES,
    partitions=(PartitionRules(name="main", nodes=("n1",), is_default=True),),
)
USERS = {caller.name: Submitter(caller, 100) for caller in (ALICE, BOB, OPERATOR)}
Answer = Callable[..., Awaitable[dict[str, Any]]]


@asynccontextmanager
async def controller(directory: Path, settings: WlmSettings) -> AsyncIterator[Answer]:
    """Run a controller without nodes, and yield a function that makes requests of users."""
    runner = CoreRunner(settings, StateStore(directory / "state.sqlite"))
    runner.handle(NodeRegistered(NODES[0], "boot"))
    task = asyncio.create_task(runner.run())
    nodes = NodeLinks(directory, runner, asyncio.create_task)
    answers = CommandAnswers(runner, nodes, reconfigure=lambda: ["a note"], shut_down=lambda: None)

    async def ask(user: str, kind: type[cmd.CommandRequest], **fields: Any) -> dict[str, Any]:
        request: Any = kind(version=1, **fields)
        return dict(await answers.answer(request, USERS[user]))

    try:
        yield ask
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        runner.close()


def run(
    directory: Path, story: Callable[[Answer], Awaitable[None]], settings: WlmSettings = SETTINGS
) -> None:
    async def play() -> None:
        async with asyncio.timeout(60), controller(directory, settings) as ask:
            await story(ask)

    asyncio.run(play())


async def submit(ask: Answer, user: str, **options: str) -> str:
    fields = {"script": b"#!/bin/sh\n", "directory": "/", "options": {"hold": "", **options}}
    return str((await ask(user, cmd.SubmitRequest, **fields))["job"])


def test_job_of_another_user_is_left_alone(tmp_path: Path) -> None:
    async def story(ask: Answer) -> None:
        number = await submit(ask, "alice")
        for kind, fields in (
            (cmd.CancelRequest, {}),
            (cmd.HoldRequest, {}),
            (cmd.ReleaseRequest, {}),
            (cmd.TopRequest, {}),
            (cmd.NotifyRequest, {"text": "x"}),
            (cmd.UpdateJobRequest, {"fields": {"Nice": "5"}}),
        ):
            (result,) = (await ask("bob", kind, jobs=(number,), **fields))["results"]
            assert result["error"].kind == "Forbidden", kind
        with pytest.raises(Forbidden):
            await ask("bob", cmd.ScriptRequest, job=number)
        with pytest.raises(Forbidden):
            await ask("bob", cmd.ProcessesRequest, job=number)
        (result,) = (await ask("olga", cmd.HoldRequest, jobs=(number,)))["results"]
        assert result["error"] is None
        assert (await ask("olga", cmd.ScriptRequest, job=number))["script"] == b"#!/bin/sh\n"

    run(tmp_path, story)


def test_filter_takes_only_jobs_that_the_user_may_change(tmp_path: Path) -> None:
    async def story(ask: Answer) -> None:
        first, second = await submit(ask, "alice"), await submit(ask, "bob")
        everything = {"filter": cmd.RowFilter(states=("PENDING",))}
        for user, jobs in (("bob", [second]), ("olga", [first])):
            results = (await ask(user, cmd.CancelRequest, **everything))["results"]
            assert [result["job"] for result in results] == jobs

    run(tmp_path, story)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (cmd.UpdateNodeRequest, {"nodes": "n1", "fields": {"State": "DRAIN", "Reason": "x"}}),
        (cmd.UpdateRequest, {"entity": "partition", "fields": {"PartitionName": "main"}}),
        (
            cmd.CreateRequest,
            {"entity": "reservation", "fields": {"Nodes": "n1", "Duration": "9", "Users": "bob"}},
        ),
        (cmd.DeleteRequest, {"entity": "partition", "fields": {"PartitionName": "main"}}),
        (cmd.ReconfigureRequest, {}),
        (cmd.SetDebugRequest, {"level": "debug", "nodes": "n1"}),
        (cmd.ShutdownRequest, {}),
    ],
    ids=["node", "partition", "reservation", "delete", "reconfigure", "debug", "shutdown"],
)
def test_cluster_is_changed_by_operators_only(
    tmp_path: Path, kind: type[cmd.CommandRequest], fields: dict[str, Any]
) -> None:
    async def story(ask: Answer) -> None:
        with pytest.raises(Forbidden):
            await ask("bob", kind, **fields)
        try:
            await ask("olga", kind, **fields)
        except FairbankError as error:
            assert not isinstance(error, Forbidden)

    run(tmp_path, story)


def test_private_rows_are_hidden_from_other_users(tmp_path: Path) -> None:
    private = DaemonSettings(private_data=frozenset({"jobs", "nodes"}))
    settings = msgspec.structs.replace(SETTINGS, cluster=private)

    async def story(ask: Answer) -> None:
        first, second = await submit(ask, "alice"), await submit(ask, "bob")
        for user, jobs in (("alice", [first]), ("bob", [second]), ("olga", [first, second])):
            for kind in ("jobs", "accounting"):
                rows: list[Any] = []
                after: str | None = ""
                while after is not None:
                    page = await ask(
                        user, cmd.RowsRequest, of=kind, columns=("job_id",), after=after or None
                    )
                    rows += msgspec.json.decode(msgspec.json.encode(page["rows"]))
                    after = page["after"]
                assert rows == [[int(job)] for job in jobs], (user, kind)
            nodes = await ask(user, cmd.RowsRequest, of="nodes", columns=("name",))
            assert nodes["rows"] == ([["n1"]] if user == "olga" else [])

    run(tmp_path, story, settings)
