"""Simulated plug-in of slurmctld: it keeps messages until they are answered, and sends them again
on each new connection.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from fairbank.agent.protocol import (
    VERSION,
    Ack,
    EpilogEvent,
    Greeting,
    LimitEvent,
    PrologRequest,
    Verdict,
    Welcome,
    split_frames,
)
from fairbank.cluster.job import Run
from fairbank.wlm.controller.plugin_codec import (
    AGENT_BODY_MAX,
    decode_agent_message,
    encode_plugin_message,
)
from tests.support.conditions import wait_until

CLUSTER, ACCOUNT, PARTITION = "local", "chem", "cpu"
HOUR = 3_600
RunMessage = PrologRequest | LimitEvent | EpilogEvent
START = 1_750_000_000


def prolog_request(job: int, **more: Any) -> PrologRequest:
    """Return the request of a job with one billing unit and one hour."""
    return PrologRequest(**_common_fields(job) | more)


def limit_event(job: int, seconds: int | None, **more: Any) -> LimitEvent:
    return LimitEvent(**_common_fields(job) | {"limit_seconds": seconds} | more)


def epilog_event(
    job: int, elapsed: int = HOUR, *, begun: bool = True, state: str = "COMPLETED", **more: Any
) -> EpilogEvent:
    end = {"end": START + elapsed, "elapsed_seconds": elapsed, "exit_status": 0}
    return EpilogEvent(**_common_fields(job) | end | {"begun": begun, "state": state} | more)


def _common_fields(job: int) -> dict[str, Any]:
    return {
        "number": 0,
        "run": Run(CLUSTER, job, START, 0),
        "uid": 1000,
        "gid": 1000,
        "account": ACCOUNT,
        "partition": PARTITION,
        "billing": Fraction(1),
        "limit_seconds": HOUR,
        "start": START,
        "batch": True,
    }


class Plugin:
    """Plug-in connected to the agent's socket at `path`."""

    def __init__(self, path: Path, cluster: str = CLUSTER, slurm: str = "22.05.8") -> None:
        self._path, self._cluster, self._slurm = path, cluster, slurm
        self._sent: dict[int, RunMessage] = {}
        self._number = 0
        self._rest = b""
        self._socket: socket.socket | None = None
        self.answers: dict[int, Verdict | Ack] = {}
        self.connections = 0

    def connect(self, seconds: float = 30) -> Plugin:
        """Connect as soon as the agent listens, and send unanswered messages again."""
        self.hang_up()
        wait_until(self._open, "an agent to listen", seconds=seconds)
        self.send_raw(
            encode_plugin_message(
                Greeting(version=VERSION, slurm=self._slurm, cluster=self._cluster)
            )
        )
        for message in self._sent.values():
            self.send_raw(encode_plugin_message(message))
        self.connections += 1
        return self

    def _open(self) -> bool:
        wire = socket.socket(socket.AF_UNIX)
        wire.settimeout(10)
        if wire.connect_ex(str(self._path)):
            wire.close()
            return False
        self._socket, self._rest = wire, b""
        return True

    def hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send_raw(self, data: bytes) -> None:
        assert self._socket is not None
        try:
            self._socket.sendall(data)
        except OSError:
            self.hang_up()

    def send(self, *messages: RunMessage) -> list[int]:
        """Send and keep these messages; return their numbers."""
        numbers = []
        for message in messages:
            self._number += 1
            self._sent[self._number] = msgspec.structs.replace(message, number=self._number)
            numbers.append(self._number)
        if self._socket is not None:
            self.send_raw(b"".join(encode_plugin_message(self._sent[number]) for number in numbers))
        return numbers

    def receive(self, seconds: float = 0.05) -> bool:
        """Read answers; return False if the agent has closed the connection."""
        if self._socket is None:
            return False
        self._socket.settimeout(seconds)
        try:
            received = self._socket.recv(65_536)
        except TimeoutError:
            return True
        except OSError:
            received = b""
        if not received:
            self.hang_up()
            return False
        whole, self._rest = split_frames(self._rest + received, max_body=AGENT_BODY_MAX)
        for body in whole:
            answer = decode_agent_message(body)
            if not isinstance(answer, Welcome):
                self.answers[answer.number] = answer
                self._sent.pop(answer.number, None)
        return True

    def wait(
        self, numbers: Iterable[int], seconds: float = 30, *, again: bool = False
    ) -> list[Verdict | Ack]:
        """Return the answers to these messages. `again`: connect again if the agent closes the
        connection.
        """
        expected = list(numbers)

        def there() -> bool:
            if not self.receive() and again:
                self.connect(seconds)
            return all(number in self.answers for number in expected)

        wait_until(there, f"{len(expected)} answers", seconds=seconds)
        return [self.answers[number] for number in expected]

    def exchange(
        self, *messages: RunMessage, seconds: float = 30, again: bool = False
    ) -> list[Verdict | Ack]:
        """Send these messages and return their answers."""
        return self.wait(self.send(*messages), seconds, again=again)

    def verdict(self, request: PrologRequest, seconds: float = 30) -> Verdict:
        (answer,) = self.exchange(request, seconds=seconds)
        assert isinstance(answer, Verdict)
        return answer

    @property
    def unanswered(self) -> int:
        return len(self._sent)

    def __enter__(self) -> Plugin:
        return self.connect()

    def __exit__(self, *about: object) -> None:
        self.hang_up()
