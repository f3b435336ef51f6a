"""Messages between the PrEp plug-in and the agent; `agent.protocol.codec` encodes them."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import msgspec

from fairbank.cluster.job import Run

VERSION = 1

Action = Literal["run", "hold", "cancel"]


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """First frame of the plug-in on each connection."""

    version: int
    slurm: str
    cluster: str


class PluginMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message of the plug-in about a run.

    `number` identifies the message on its connection. `limit_seconds` is None for no limit; times
    are seconds since 1970. `array` is (array job id, task), `het` (leader's job id, component).
    `billing` and `tres` are as Slurm computes and writes them. The owner chooses `name` freely.
    """

    number: int
    run: Run
    uid: int
    gid: int
    account: str = ""
    partition: str = ""
    qos: str | None = None
    tres: str = ""
    name: str = ""
    billing: Fraction = Fraction(0)
    limit_seconds: int | None = None
    start: int
    batch: bool
    array: tuple[int, int] | None = None
    het: tuple[int, int] | None = None


class PrologRequest(PluginMessage, frozen=True, kw_only=True):
    """Request to start a run. The agent answers with a Verdict."""


class LimitEvent(PluginMessage, frozen=True, kw_only=True):
    """Time limit of a run that has started; answered by Ack.

    The plug-in also sends one for every running run to an agent that it has just connected to.
    """


class EpilogEvent(PluginMessage, frozen=True, kw_only=True):
    """End of a run; answered by Ack.

    `begun` is False for a run that never started. `exit_status` is that of wait(2).
    """

    end: int
    elapsed_seconds: int
    suspended_seconds: int
    state: str
    exit_status: int
    begun: bool


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a PrologRequest: `reason` is one word for squeue, `text` one line for the owner.

    `number` is that of the request; 0 until the verdict is sent.
    """

    number: int = 0
    action: Action
    reason: str = ""
    text: str = ""


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledgement: the message with this number is safe and need not be repeated."""

    number: int


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """First frame of the agent."""

    version: int = VERSION


FromPlugin = Greeting | PrologRequest | LimitEvent | EpilogEvent
FromAgent = Welcome | Verdict | Ack
