"""slurmctld's plug-in, simulated: keeps what it says until it is answered, says it again on each new connection."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from fairbank.agent.protocol.codec import AGENT_BODY_MAX, split_frames
from fairbank.agent.protocol.messages import (
    VERSION,
    Ack,
    EpilogEvent,
    Greeting,
    LimitEvent,
    PrologRequest,
    Verdict,
    Welcome,
)
from fairbank.cluster.job import Run
from tests.support.conditions import wait_until
from tests.support.plugin_codec import decode_agent_message, encode_plugin_message

CLUSTER, ACCOUNT, PARTITION = "local", "chem", "cpu"
HOUR = 3_600
Said = PrologRequest | LimitEvent | EpilogEvent
BEGAN = 1_750_000_000


def asks(job: int, **more: Any) -> PrologRequest:
    """A job of one billing unit and one hour asks whether it may start."""
    return PrologRequest(**_facts(job) | more)


def limits(job: int, seconds: int | None, **more: Any) -> LimitEvent:
    return LimitEvent(**_facts(job) | {"limit_seconds": seconds} | more)


def ends(
    job: int, elapsed: int = HOUR, *, begun: bool = True, state: str = "COMPLETED", **more: Any
) -> EpilogEvent:
    end = {
        "end": BEGAN + elapsed,
        "elapsed_seconds": elapsed,
        "suspended_seconds": 0,
        "exit_status": 0,
    }
    return EpilogEvent(**_facts(job) | end | {"begun": begun, "state": state} | more)


def _facts(job: int) -> dict[str, Any]:
    return {
        "number": 0,
        "run": Run(CLUSTER, job, BEGAN, 0),
        "uid": 1000,
        "gid": 1000,
        "account": ACCOUNT,
        "partition": PARTITION,
        "billing": Fraction(1),
        "limit_seconds": HOUR,
        "start": BEGAN,
        "batch": True,
    }


class Plugin:
    """Speaks to the agent at `path`. `hear` and `settle` come back when an answer has."""

    def __init__(self, path: Path, cluster: str = CLUSTER) -> None:
        self._path, self._cluster = path, cluster
        self._kept: dict[int, Said] = {}
        self._number = 0
        self._rest = b""
        self._wire: socket.socket | None = None
        self.answers: dict[int, Verdict | Ack] = {}
        self.met = 0

    def connect(self, seconds: float = 30) -> Plugin:
        """As soon as somebody listens; what was not answered is said again."""
        self.hang_up()
        wait_until(self._reached, "an agent to listen", seconds=seconds)
        self.send_raw(
            encode_plugin_message(Greeting(version=VERSION, slurm="22.05.8", cluster=self._cluster))
        )
        for each in self._kept.values():
            self.send_raw(encode_plugin_message(each))
        self.met += 1
        return self

    def _reached(self) -> bool:
        wire = socket.socket(socket.AF_UNIX)
        wire.settimeout(10)
        if wire.connect_ex(str(self._path)):
            wire.close()
            return False
        self._wire, self._rest = wire, b""
        return True

    def hang_up(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def send_raw(self, data: bytes) -> None:
        assert self._wire is not None
        try:
            self._wire.sendall(data)
        except OSError:
            self.hang_up()

    def say(self, *told: Said) -> list[int]:
        """Say these in one go, and keep them. Their numbers."""
        numbers = []
        for each in told:
            self._number += 1
            self._kept[self._number] = msgspec.structs.replace(each, number=self._number)
            numbers.append(self._number)
        if self._wire is not None:
            self.send_raw(b"".join(encode_plugin_message(self._kept[number]) for number in numbers))
        return numbers

    def hear(self, seconds: float = 0.05) -> bool:
        """Take what has been said. False when the agent is not there any more."""
        if self._wire is None:
            return False
        self._wire.settimeout(seconds)
        try:
            received = self._wire.recv(65_536)
        except TimeoutError:
            return True
        except OSError:
            received = b""
        if not received:
            self.hang_up()
            return False
        whole, self._rest = split_frames(self._rest + received, max_body=AGENT_BODY_MAX)
        for body in whole:
            said = decode_agent_message(body)
            if not isinstance(said, Welcome):
                self.answers[said.number] = said
                self._kept.pop(said.number, None)
        return True

    def wait(
        self, numbers: Iterable[int], seconds: float = 30, *, again: bool = False
    ) -> list[Verdict | Ack]:
        """The answers to these. `again`: connect again when the agent goes away."""
        wanted = list(numbers)

        def there() -> bool:
            if not self.hear() and again:
                self.connect(seconds)
            return all(number in self.answers for number in wanted)

        wait_until(there, f"{len(wanted)} answers", seconds=seconds)
        return [self.answers[number] for number in wanted]

    def settle(self, *told: Said, seconds: float = 30, again: bool = False) -> list[Verdict | Ack]:
        """Say these and wait for their answers."""
        return self.wait(self.say(*told), seconds, again=again)

    def verdict(self, told: PrologRequest, seconds: float = 30) -> Verdict:
        (said,) = self.settle(told, seconds=seconds)
        assert isinstance(said, Verdict)
        return said

    @property
    def unanswered(self) -> int:
        return len(self._kept)

    def __enter__(self) -> Plugin:
        return self.connect()

    def __exit__(self, *about: object) -> None:
        self.hang_up()
