"""What the agent has to tell the bank, one letter a report; and what it knows of each run."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec

from fairbank.core.final_state import REQUEUED, final_state
from fairbank.slurm.records import EpilogTold, Say, Told
from fairbank.slurm.report_results import words_of


class Kind(Enum):
    """What a report is about, in the bank's words."""

    HOLD = "hold"
    ADJUST = "adjust"
    COMPLETE = "complete"


class State(Enum):
    """What has become of a run, as far as the agent knows."""

    ASKED = "asked"
    """its question is open"""
    HELD = "held"
    """the bank holds its price, and it was let run"""
    LET = "let"
    """it was let run, and the bank has not answered yet"""
    UNHELD = "unheld"
    """it runs, though the bank refused to hold its price"""
    REFUSED = "refused"
    """it was refused, or ended before it began, and the bank is to hold nothing for it"""
    PUT_OFF = "put off"
    """it was refused because the bank did not answer, which may hold its price all the same"""
    ENDED = "ended"
    """its end was told"""


class Words(msgspec.Struct, frozen=True):
    """A no, as a verdict says it."""

    say: Say
    reason: str
    text: str


class Known(msgspec.Struct, frozen=True):
    """A run: its state, the time limit that was told last (seconds), and how it was refused if it was."""

    state: State
    limit: int | None = None
    words: Words | None = None


class Receipt(NamedTuple):
    """Where an answer goes: a connection of the plug-in, and the number that the answer must bear."""

    door: Any
    number: int


class Letter(msgspec.Struct, eq=False):
    """A report on its way. `body` is the JSON that is sent; `heard` is when (seconds since 1970).

    `stored`: it is on our disk. `tried`: it may have reached the bank. `turned`: it was sent as a
    report of another kind before. `receipts` wait for it to be safe.
    """

    seq: int
    run: str
    kind: Kind
    body: bytes
    heard: float
    stored: bool = False
    tried: int = 0
    turned: bool = False
    receipts: tuple[Receipt, ...] = ()


_EXACT = Context(prec=80)
_encode = msgspec.json.Encoder().encode


def report(told: Told, kind: Kind, key: str) -> bytes:
    """What the bank is told, as JSON. A run that never began has lasted no time, whatever the clock says. One that ended before it began,
    since the clock was set back, began when it ended: so accounting takes it."""
    run = told.run
    said: dict[str, object] = {
        "do": kind.value,
        "cluster": run.cluster,
        "job_id": run.job_id,
        "submitted": run.submitted,
        "restart": run.restart,
        "owner_uid": told.uid,
        "account": told.account,
        "partition": told.partition,
        "start": told.start,
        "billing": decimal(told.billing),
        "key": key,
    }
    if told.qos:
        said["qos"] = told.qos
    if told.limit_seconds is not None:
        said["time_limit"] = told.limit_seconds
    said |= words_of(told.name, told.tres)
    if kind is Kind.COMPLETE and isinstance(told, EpilogTold):
        said["start"] = min(told.start, told.end)
        said["end"] = told.end
        said["elapsed"] = told.elapsed_seconds if told.begun else 0
        said["state"] = (
            final_state(told.state) or REQUEUED
        )  # slurmctld may have put its job back already
        if told.begun and told.exit_status < 65_536:
            said["exit_code"], said["exit_signal"] = told.exit_status // 256, told.exit_status % 128
    return _encode(said)


def turned(letter: Letter, kind: Kind, key: str) -> Letter:
    """The same facts as a report of another kind: a hold for an adjustment that found none, or the other way round."""
    said = facts(letter) | {"do": kind.value, "key": key}
    return msgspec.structs.replace(
        letter, kind=kind, body=_encode(said), turned=True, stored=False, tried=0
    )


def facts(letter: Letter) -> dict[str, Any]:
    """What a letter says, by the names of the REST language."""
    said: dict[str, Any] = msgspec.json.decode(letter.body)
    return said


def bulk(letters: list[Letter]) -> bytes:
    """The body of one request for all of them, in their order."""
    return b'{"reports":[%b]}' % b",".join([each.body for each in letters])


def decimal(exact: Fraction) -> str:
    """A fraction that was a decimal, as that decimal."""
    if exact.denominator == 1:
        return str(exact.numerator)
    return format(_EXACT.divide(Decimal(exact.numerator), Decimal(exact.denominator)), "f")


def billing_of(said: Mapping[str, Any]) -> Fraction:
    """The billing units that a report tells."""
    return Fraction(said["billing"])
