"""Simulated node daemon: it speaks the protocol of nodes, and its scripts only take time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from fairbank.cluster.job import Run
from fairbank.core.errors import Conflict, FairbankError, NotFound
from fairbank.wlm.protocol import messages as wire
from fairbank.wlm.protocol.connection import Connection
from tests.wlm.simulation.virtual_loop import MemoryTransport, VirtualLoop, VirtualTime

CPUS = 4
_HELLO = wire.Hello(role="node", name="")


class _NodeConnection(Connection):
    """Connection of a node, which can stall. `wire` is its transport."""

    wire: MemoryTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.wire = transport
        super().connection_made(transport)

    def stall(self, *, stalled: bool) -> None:
        for end in (self.wire, self.wire.peer):
            end.stall(stalled=stalled)


class SimulatedRun:
    """Run on a node: its status, its processors, and the timers of its script."""

    def __init__(self, start: wire.StartJob, cpus: int) -> None:
        self.start, self.cpus = start, cpus
        self.status = wire.RunStatus(run=start.run, state="prolog")
        self.began: float | None = None
        self.is_ending = False
        self.limit: asyncio.TimerHandle | None = None

    @property
    def has_processes(self) -> bool:
        return self.began is not None and self.status.end is None

    @property
    def script(self) -> tuple[float, int]:
        """Seconds and wait status of the script: its last line has both."""
        if not self.start.script:  # it holds a node beside that of the batch script
            return 1e6, 0
        *_, seconds, status = self.start.script.split()
        return float(seconds), int(status)


class SimulatedNode:
    """Node of a simulation. Its runs survive its daemon, but not its boot.

    `begun` has all runs whose script ever began here.
    """

    def __init__(
        self,
        name: str,
        path: str,
        loop: VirtualLoop,
        time: VirtualTime,
        cpus_of: Callable[[Run, str], int],
    ) -> None:
        self.name, self._path, self._loop, self._time = name, path, loop, time
        self._cpus_of = cpus_of
        self.runs: dict[Run, SimulatedRun] = {}
        self.begun: set[Run] = set()
        self._boots = 1
        self._connections: set[Connection] = set()
        self._is_up = False
        self.open()

    @property
    def _random(self) -> Random:
        return self._loop.random

    # ------------------------------------------------------------------ faults

    def open(self) -> None:
        """Start the daemon: it goes on with what it finds."""
        self._is_up = True
        hello = replace(_HELLO, name=self.name)
        self._loop.listeners[self._path] = lambda: _NodeConnection(self, hello)
        for run in list(self.runs.values()):
            if run.status.state in ("prolog", "starting") and run.began is None:
                self._finish(run, "launch", None)
            elif run.status.end is not None and run.status.state != "finished":
                self._finish(run, run.status.end.cause, run.status.end.status)

    def kill(self) -> None:
        """Kill the daemon. The scripts go on."""
        self._is_up = False
        self._loop.listeners.pop(self._path, None)
        for connection in list(self._connections):
            connection.close()
        self._connections.clear()

    def boot(self) -> None:
        """Lose all processes."""
        self.kill()
        self._boots += 1
        for run in self.runs.values():
            if run.status.state != "finished":
                end = self._outcome(run, "node_failure", None)
                run.status = wire.RunStatus(run=run.start.run, state="finished", end=end)

    def stall(self, *, stalled: bool) -> None:
        """Let no message arrive here or at the controller, or let all that wait arrive."""
        for connection in self._connections:
            assert isinstance(connection, _NodeConnection)
            connection.stall(stalled=stalled)

    # ------------------------------------------------------------------ runs

    def _after(self, seconds: float, step: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(self._random.uniform(0, seconds), step)

    def _change(self, run: SimulatedRun, state: wire.RunState, **fields: Any) -> None:
        run.status = wire.RunStatus(run=run.start.run, state=state, **fields)
        for connection in self._connections:
            connection.send(run.status)

    def _start(self, start: wire.StartJob) -> None:
        if start.run not in self.runs:
            run = self.runs[start.run] = SimulatedRun(start, self._cpus_of(start.run, self.name))
            self._after(0.2, lambda: self._begin(run))

    def _begin(self, run: SimulatedRun) -> None:
        """End the Prolog and start the script, which fails now and then."""
        if not self._is_up or run.status.state != "prolog":
            return
        if run.is_ending or self._random.random() < 0.02:
            self._change(run, "epilog", end=self._outcome(run, "launch", None))
            self._finish(run, "launch", None)
            return
        identity = run.start.run
        assert identity not in self.begun, f"W2: {identity} starts twice on {self.name}"
        self.begun.add(identity)
        run.began = self._loop.time()
        used = sum(other.cpus for other in self.runs.values() if other.has_processes)
        assert used <= CPUS, f"W1: {used} processors of {self.name} are used"
        self._change(run, "running")
        self._arm(run, run.start.seconds)
        seconds, status = run.script
        self._loop.call_later(seconds, lambda: self._end(run, "exit", status))

    def _arm(self, run: SimulatedRun, seconds: float | None) -> None:
        if run.limit is not None:
            run.limit.cancel()
        if seconds is not None:
            run.limit = self._loop.call_later(seconds, lambda: self._end(run, "time_limit", 15))

    def _end(self, run: SimulatedRun, cause: wire.EndCause, status: int | None) -> None:
        """End the processes, which the daemon learns at once if there is one."""
        if not run.has_processes:
            return
        end = self._outcome(run, cause, status)
        run.status = replace(run.status, end=end)
        if self._is_up:
            self._change(run, "epilog", end=end)
            self._after(0.5, lambda: self._finish(run, cause, status))

    def _finish(self, run: SimulatedRun, cause: wire.EndCause, status: int | None) -> None:
        if self._is_up and run.status.state != "finished":
            end = run.status.end or self._outcome(run, cause, status)
            self._change(run, "finished", end=end, epilog_status=0)

    def _outcome(
        self, run: SimulatedRun, cause: wire.EndCause, status: int | None
    ) -> wire.RunOutcome:
        elapsed = 0.0 if run.began is None else self._loop.time() - run.began
        return wire.RunOutcome(
            cause=cause, status=status, ended=self._time.time(), elapsed_seconds=elapsed
        )

    # ------------------------------------------------------------------ requests

    def on_hello(self, connection: Connection, hello: wire.Hello) -> None:
        self._connections.add(connection)
        connection.send(self._registration())

    def on_close(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def on_message(self, connection: Connection, message: wire.Message, number: int) -> None:
        try:
            answer = self._carry_out(message)
        except FairbankError as error:
            answer = wire.error_message(error)
        connection.send(answer, number)

    def _carry_out(self, message: wire.Message) -> wire.Message:
        match message:
            case wire.StartJob():
                self._start(message)
            case wire.EndJob(run=identity, seconds=seconds, reason=reason):
                if (run := self.runs.get(identity)) is None:
                    raise NotFound(f"{identity} is not known", field="run")
                self._request_end(run, reason, seconds)
            case wire.ForgetRun(run=identity):
                if (run := self.runs.get(identity)) and run.status.state != "finished":
                    raise Conflict(f"{identity} has not finished", field="run")
                self.runs.pop(identity, None)
            case wire.PollNode():
                return self._registration()
        return wire.Accepted()

    def _request_end(self, run: SimulatedRun, reason: str, seconds: float | None) -> None:
        if reason == wire.TIME_LIMIT:
            self._arm(run, seconds)
        elif run.has_processes:
            self._after(2, lambda: self._end(run, "request", 15))
        else:
            run.is_ending = True

    def _registration(self) -> wire.Registration:
        return wire.Registration(
            node=self.name,
            release="simulated",
            started=0.0,
            cpus=CPUS,
            memory=1_000,
            free_memory=1_000,
            tmp=1_000,
            load=0.0,
            boot_time=0.0,
            boot_id=f"boot {self._boots}",
            system="Linux",
            machine="x86_64",
            runs=tuple(run.status for run in self.runs.values()),
        )
