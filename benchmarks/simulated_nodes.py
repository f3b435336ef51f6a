"""Program that plays node daemons whose jobs run nothing: they end one after the other, at a rate.

`python -m benchmarks.simulated_nodes DIRECTORY NODES CPUS MEMORY ENDS` serves the sockets of the
nodes `n0001` ... of the controller in a directory, with so many ends per second.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from pathlib import Path

from fairbank.cluster.job import Run
from fairbank.wlm.protocol.connection import Connection
from fairbank.wlm.protocol.messages import (
    Accepted,
    EndJob,
    Hello,
    Message,
    PollNode,
    Registration,
    RunOutcome,
    RunStatus,
    StartJob,
)


class SimulatedNode:
    """Node without processes. `running` is the queue of the runs of all nodes, oldest first."""

    def __init__(
        self, name: str, cpus: int, memory: int, running: deque[tuple[SimulatedNode, Run]]
    ) -> None:
        self._name, self._cpus, self._memory, self._running = name, cpus, memory, running
        self._runs: set[Run] = set()
        self._connection: Connection | None = None

    def connect(self) -> Connection:
        return Connection(self, Hello(role="node", name=self._name))

    def on_hello(self, connection: Connection, hello: Hello) -> None:
        self._connection = connection
        connection.send(self._registration())

    def on_close(self, connection: Connection) -> None:
        self._connection = None

    def on_message(self, connection: Connection, message: Message, number: int) -> None:
        if isinstance(message, PollNode):
            connection.send(self._registration(), number)
            return
        connection.send(Accepted(), number)
        if isinstance(message, StartJob) and message.run not in self._runs:
            self._runs.add(message.run)
            self._running.append((self, message.run))
            connection.send(RunStatus(run=message.run, state="running"))
        elif isinstance(message, EndJob) and message.seconds == 0:
            self.end(message.run)

    def end(self, run: Run) -> bool:
        """End a run; return False if it has ended."""
        if run not in self._runs or self._connection is None:
            return False
        self._runs.remove(run)
        outcome = RunOutcome(cause="exit", status=0, ended=time.time())
        self._connection.send(RunStatus(run=run, state="finished", end=outcome))
        return True

    def _registration(self) -> Registration:
        return Registration(
            node=self._name,
            release="",
            started=0.0,
            cpus=self._cpus,
            memory=self._memory,
            free_memory=self._memory,
            tmp=0,
            load=0.0,
            boot_time=0.0,
            boot_id="boot",
            system="",
            machine="",
        )


async def main(directory: Path, nodes: int, cpus: int, memory: int, ends: int) -> None:
    running: deque[tuple[SimulatedNode, Run]] = deque()
    loop = asyncio.get_running_loop()
    for number in range(1, nodes + 1):
        name = f"n{number:04}"
        node = SimulatedNode(name, cpus, memory, running)
        await loop.create_unix_server(node.connect, str(directory / "nodes" / f"{name}.sock"))
    print("ready", flush=True)
    due = loop.time()
    while True:
        due = max(due + 1 / ends, loop.time() - 1)  # what is late is made up for a second at most
        await asyncio.sleep(due - loop.time())
        # A full cluster: an idle node would make the ends outrun the starts.
        while len(running) > nodes // 2 and not (ended := running.popleft())[0].end(ended[1]):
            pass


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
