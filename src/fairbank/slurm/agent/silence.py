"""What becomes of a question that the bank does not answer in time, and the credit that was last known."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from typing import Annotated, Any, Literal

import msgspec

from fairbank.core.units import round_up
from fairbank.slurm.agent.judging import beyond_cache, put_off
from fairbank.slurm.agent.letters import Words, billing_of
from fairbank.slurm.report_results import Judgement, ReportResult


class Silence(Enum):
    """A partition's policy for when the bank cannot answer."""

    OPEN = "open"
    CLOSED = "closed"
    CREDIT = "credit"


class PartitionTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a partition's jobs are treated.

    `patience`: seconds that a question waits for the bank; less than the plug-in's own fairbank_patience. `silence`: what then: "open" lets
    the job run and reports it later, "closed" puts it off until the bank is back, "credit" lets it run if the balance that was last known
    pays for it and else puts it off. `refusal`: what becomes of a job without credit: "hold" keeps scripts in the queue, "cancel" ends
    them; jobs that somebody waits for at a terminal always end. `unbillable`: jobs that the bank can hold nothing for (unknown account or
    partition, no time limit, a clock that is wrong): "refuse"; or "run", without a hold. Their ends are told to the bank, which charges
    what they took if it takes late charges; those whose account or partition it does not know even then it refuses again: nothing is
    charged, and the refusal is kept. `ahead`: a job starts before the bank has answered where at least so many times its price was left a
    few minutes ago; 0 for never. It spares who waits at a terminal a tenth of a second.
    """

    patience: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 10.0
    silence: Silence = Silence.CLOSED
    refusal: Literal["hold", "cancel"] = "hold"
    unbillable: Literal["refuse", "run"] = "refuse"
    ahead: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0


def deadline(heard: float, terms: PartitionTerms, down_since: float | None) -> float:
    """When a question that was heard then is decided without the bank: at once where the bank has been away for long."""
    if down_since is not None and heard - down_since >= terms.patience:
        return heard
    return heard + terms.patience


FRESH_SECONDS = 300.0


class Credit:
    """What the bank last said: who pays for an account's runs in a partition, what was left there, and the factor of each QOS."""

    def __init__(self) -> None:
        self._payers: dict[str, int] = {}
        self._left: dict[int, int] = {}
        self._factors: dict[str, float] = {}
        self._seen: dict[int, float] = {}  # when each was told; not kept over lives

    def learn(self, said: dict[str, Any], judgement: Judgement, now: float) -> None:
        """Keep what an answer to a report tells of balances and prices."""
        if (
            judgement.allocation is None
            or judgement.available is None
            or judgement.came not in (ReportResult.GRANTED, ReportResult.REFUSED)
        ):
            return
        self._payers[_place(said)] = judgement.allocation
        self._left[judgement.allocation] = judgement.available
        self._seen[judgement.allocation] = now
        if said["do"] == "hold" and said.get("qos") and judgement.amount:
            plain = float(said["billing"]) * said["time_limit"] / 60
            if plain >= _TELLING:
                self._factors[said["qos"]] = round(judgement.amount / plain, 2)

    def price(self, said: dict[str, Any]) -> int:
        """What the run that is reported may cost at most, in SU-minutes, by the factor last seen for its QOS."""
        factor = Fraction(str(self._factors.get(said.get("qos", ""), 1)))
        return round_up(billing_of(said) * int(said.get("time_limit", 0)) / 60 * factor)

    def take(self, said: dict[str, Any], times: int = 1) -> bool:
        """Whether what was left pays so many times for this run; if so, its price less is left."""
        payer = self._payers.get(_place(said))
        if payer is None or times * (amount := self.price(said)) > self._left[payer]:
            return False
        self._left[payer] -= amount
        return True

    def is_fresh(self, said: dict[str, Any], now: float) -> bool:
        """Whether the balance that would pay for this run was told lately."""
        payer = self._payers.get(_place(said))
        return payer is not None and now - self._seen.get(payer, -FRESH_SECONDS) < FRESH_SECONDS

    def dump(self) -> bytes:
        """All of it, for `load`."""
        return msgspec.json.encode((self._payers, list(self._left.items()), self._factors))

    def load(self, kept: bytes) -> None:
        payers, left, factors = msgspec.json.decode(
            kept, type=tuple[dict[str, int], list[tuple[int, int]], dict[str, float]]
        )
        self._payers, self._left, self._factors = payers, dict(left), factors


_TELLING = 600  # SU-minutes from which on rounding up does not blur the factor


def _place(said: dict[str, Any]) -> str:
    return f"{said['cluster']}/{said['account']}/{said['partition']}"


def unanswered(
    terms: PartitionTerms, said: dict[str, Any], credit: Credit, *, batch: bool
) -> Words | None:
    """The verdict on a question whose time is over: None lets it run."""
    if terms.silence is Silence.OPEN or (terms.silence is Silence.CREDIT and credit.take(said)):
        return None
    return (
        put_off(batch=batch)
        if terms.silence is Silence.CLOSED
        else beyond_cache(said["account"], batch=batch)
    )
