"""Links to node daemons: they connect again and again, and report a node that is silent."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path

from fairbank.cluster.job import Run
from fairbank.cluster.node import Gpus, Node
from fairbank.core.errors import FairbankError, Unavailable
from fairbank.rest.auth.peers import is_own_user
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.nodes.node_requests import limit_request, start_request, step_request
from fairbank.wlm.core.effects import ChangeLimit, Message, StartRun, StartTasks
from fairbank.wlm.core.events import (
    NodeDisconnected,
    NodeRegistered,
    NodeSilent,
    RunChanged,
    StepChanged,
)
from fairbank.wlm.core.requests.known_names import unknown
from fairbank.wlm.protocol import messages as wire
from fairbank.wlm.protocol.connection import Connection

TICK_SECONDS = 0.5
"""Pause between two attempts to connect, and between two looks at what is due."""
POLLS = 3
"""Polls of a node within SlurmdTimeout."""

_log = logging.getLogger(__name__)

StartTask = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]
"""Function that starts a task, and keeps it until its end."""


class NodeLink:
    """Link to one node.

    What cannot be sent is dropped: at the next registration the core sends what the node lacks.
    `registration` is the last one.

    Invariants: `_connection` is None, or the last one, which may be closed; `_is_registered`: the
    node has registered on it. `_messages` keeps the order of what the core sends. `_heard_at` is
    the loop's time of the last message, and `_is_silent`: the core knows that there was none for
    SlurmdTimeout.
    """

    def __init__(self, name: str, path: Path, runner: CoreRunner, start_task: StartTask) -> None:
        self._name, self._path, self._runner, self._start_task = name, path, runner, start_task
        self._connection: Connection | None = None
        self.registration: wire.Registration | None = None
        self._is_registered = self._is_silent = False
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._heard_at = self._polled_at = asyncio.get_running_loop().time()

    def send(self, message: Message) -> None:
        self._messages.put_nowait(message)

    async def ask(self, request: wire.Message) -> wire.Message:
        """Return the answer of the node to a request.

        Raises FairbankError, also if the node is not connected or does not answer.
        """
        connection = self._connection
        if connection is None or connection.is_closed or not self._is_registered:
            raise Unavailable(f"node {self._name} is not connected", remedy="try again later")
        seconds = self._runner.settings.cluster.message_timeout
        try:
            async with asyncio.timeout(seconds):
                return await connection.request(request)
        except TimeoutError:
            text = f"node {self._name} has not answered within {seconds} s (MessageTimeout)"
            raise Unavailable(text, remedy="try again later") from None

    async def run(self) -> None:
        """Keep the connection, until cancelled."""
        sending = asyncio.create_task(self._send_all())
        try:
            while True:
                if self._connection is None or self._connection.is_closed:
                    await self._connect()
                self._watch(asyncio.get_running_loop().time())
                await asyncio.sleep(TICK_SECONDS)
        finally:
            sending.cancel()
            if self._connection is not None and not self._connection.is_closed:
                self._connection.close()

    async def _connect(self) -> None:
        self._is_registered = False
        hello = wire.Hello(role="controller", name=self._runner.settings.cluster.cluster_name)
        try:
            _, self._connection = await asyncio.get_running_loop().create_unix_connection(
                lambda: Connection(self, hello, is_own_user), str(self._path)
            )
        except OSError:
            self._connection = None

    def _watch(self, now: float) -> None:
        """Poll the node, and report it to the core when it has been silent for SlurmdTimeout."""
        timeout = self._runner.settings.cluster.slurmd_timeout
        if not timeout:  # nodes are never given up
            return
        if now - self._heard_at > timeout and not self._is_silent:
            self._is_silent = True
            self._runner.handle(NodeSilent(self._name))
        if now - self._polled_at > timeout / POLLS and self._is_registered:
            self._polled_at = now
            self._start_task(self.poll())

    async def poll(self) -> None:
        """Let the node register again, if it is connected."""
        try:
            answer = await self.ask(wire.PollNode())
        except FairbankError:
            return
        if isinstance(answer, wire.Registration):
            self._register(answer)

    # ------------------------------------------------------------------ from the node

    def on_hello(self, connection: Connection, hello: wire.Hello) -> None:
        if (hello.role, hello.name) != ("node", self._name):
            _log.error("%s is the socket of %s %s", self._path, hello.role, hello.name)
            connection.close()

    def on_message(self, connection: Connection, message: wire.Message, number: int) -> None:
        match message:
            case wire.Registration(node=name) if name == self._name:
                self._register(message)
            case wire.RunStatus():
                self._note_message()
                self._record_outcome(message)
                self._runner.handle(RunChanged(self._name, message))
            case wire.StepStatus():
                self._note_message()
                self._runner.handle(StepChanged(self._name, message))
            case _:
                _log.error("node %s sent %s", self._name, type(message).__name__)

    def on_close(self, connection: Connection) -> None:
        _log.warning("node %s: the connection was closed", self._name)
        if connection is self._connection:
            self._runner.handle(NodeDisconnected(self._name))

    def _note_message(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()

    def _register(self, message: wire.Registration) -> None:
        """Let the core compare the runs."""
        self._note_message()
        self.registration = message
        self._is_registered, self._is_silent = True, False
        for status in message.runs:
            self._record_outcome(status)
        resources = Node(
            name=message.node,
            cpus=max(message.cpus, 1),
            memory=max(message.memory, 1),
            tmp=max(message.tmp, 0),
            gpus=tuple(Gpus(kind, count) for kind, count in Counter(message.gpus).items()),
        )
        self._runner.handle(NodeRegistered(resources, message.boot_id, message.runs, message.steps))

    def _record_outcome(self, status: wire.RunStatus) -> None:
        job = self._runner.state.job_of(status.run)
        # Of the other nodes nothing counts.
        if status.end and job and job.run and job.run.batch_node == self._name:
            self._runner.record_outcome(status.run, status.end)

    # ------------------------------------------------------------------ to the node

    async def _send_all(self) -> None:
        while True:
            message = await self._messages.get()
            connection = self._connection
            if connection is None or connection.is_closed or not self._is_registered:
                continue
            try:
                request: Message | wire.Message = message
                if isinstance(message, StartRun):
                    request = await start_request(self._runner, self._name, message)
                elif isinstance(message, StartTasks):
                    registration = self.registration
                    request = step_request(
                        self._runner,
                        self._name,
                        message,
                        has_device_groups=registration is not None and registration.device_groups,
                    )
                elif isinstance(message, ChangeLimit):
                    request = limit_request(message, self._runner.now().mono)
            except FairbankError as error:
                self._refuse(message, error.message)
                continue
            if isinstance(request, wire.Message):
                # Tasks begin in the order of their creation, and with the sending. A connection
                # that was lost meanwhile sends nothing.
                self._start_task(self._deliver(connection, message, request))

    async def _deliver(
        self, connection: Connection, message: Message, request: wire.Message
    ) -> None:
        try:
            answer = await connection.request(request)
        except Unavailable:
            return
        self._note_message()
        if isinstance(answer, wire.ErrorMessage):
            match message, answer.kind:
                case wire.EndJob(run=run), "NotFound":
                    # The start got lost. No later one can come: it would be behind this request.
                    self._report_failure(run)
                case wire.ForgetRun() | wire.EndStep() | wire.ForgetStep(), _:
                    pass
                case _:
                    self._refuse(message, answer.message)

    def _refuse(self, message: Message, reason: str) -> None:
        """Handle a message that cannot be carried out."""
        _log.warning("node %s: %s: %s", self._name, type(message).__name__, reason)
        if isinstance(message, StartRun):
            self._report_failure(message.run.run, reason)
        elif isinstance(message, StartTasks):
            end = wire.RunOutcome(cause="launch", text=reason, ended=time.time())
            step = wire.StepStatus(run=message.step.run, step=message.step.number, end=end)
            self._runner.handle(StepChanged(self._name, step))

    def _report_failure(self, run: Run, reason: str = "") -> None:
        """Let the core know that a run has not been started, and will not be."""
        end = wire.RunOutcome(cause="launch", text=reason, ended=time.time())
        status = wire.RunStatus(run=run, state="finished", end=end)
        self._runner.handle(RunChanged(self._name, status))


class NodeLinks:
    """Links to all nodes."""

    def __init__(self, directory: Path, runner: CoreRunner, start_task: StartTask) -> None:
        """Begin without links; `directory` has the sockets of the nodes."""
        self._directory, self._runner, self._start_task = directory, runner, start_task
        self._links: dict[str, tuple[NodeLink, asyncio.Task[None]]] = {}

    def update(self) -> None:
        """Begin the links to nodes that are configured, and end those to nodes that are not.

        The others register again: they may have less than is configured now.
        """
        nodes = self._runner.state.configured
        for name in self._links.keys() - nodes.keys():
            self._links.pop(name)[1].cancel()
        for link, _ in self._links.values():
            self._start_task(link.poll())
        for name in nodes.keys() - self._links.keys():
            path = self._directory / f"{name}.sock"
            link = NodeLink(name, path, self._runner, self._start_task)
            self._links[name] = (link, self._start_task(link.run()))

    def send(self, node: str, message: Message) -> None:
        """Send a message of the core to a node."""
        if node in self._links:
            self._links[node][0].send(message)

    @property
    def registrations(self) -> dict[str, wire.Registration]:
        """Last registration of each node that has sent one."""
        registrations = {name: link.registration for name, (link, _) in self._links.items()}
        return {name: one for name, one in registrations.items() if one is not None}

    async def ask(self, node: str, request: wire.Message) -> wire.Message:
        """Return the answer of a node to a request. Raises FairbankError."""
        if node not in self._links:
            raise unknown("node", node)
        answer = await self._links[node][0].ask(request)
        if isinstance(answer, wire.ErrorMessage):
            raise Unavailable(f"node {node}: {answer.message}", remedy=answer.remedy)
        return answer
