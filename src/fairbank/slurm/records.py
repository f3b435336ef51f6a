"""What the PrEp plug-in and the agent say to each other, as values. How they are written is for `slurm.frames`."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import msgspec

from fairbank.cluster.job import Run

VERSION = 1

Say = Literal["run", "hold", "cancel"]


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """The plug-in's first frame on each connection."""

    version: int
    slurm: str
    cluster: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a run. `number` is of this connection; `limit_seconds` is None for no limit; instants are seconds since 1970.

    `array` is (array job id, task), `het` (leader's job id, component). `billing` is Slurm's, `tres` as Slurm writes it. `name` is its
    owner's to choose, whatever it holds.
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


class PrologAsked(Told, frozen=True, kw_only=True):
    """May it run? Answered by a Verdict."""


class LimitChanged(Told, frozen=True, kw_only=True):
    """It runs, with this time limit. Also said of every running run to an agent that has just come. Answered by Noted."""


class EpilogTold(Told, frozen=True, kw_only=True):
    """It has ended. `begun` is False when it was never let run. `exit_status` is that of wait(2). Answered by Noted."""

    end: int
    elapsed_seconds: int
    suspended_seconds: int
    state: str
    exit_status: int
    begun: bool


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to PrologAsked: `reason` is one word for squeue, `text` one line for people."""

    number: int
    say: Say
    reason: str = ""
    text: str = ""


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What bore this number is safe with us and need not be said again."""

    number: int


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's first frame."""

    version: int = VERSION


Question = Greeting | PrologAsked | LimitChanged | EpilogTold
Answer = Welcome | Verdict | Noted
