"""Refusals, the outage policy of partitions, and the credit that the agent last knew."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from typing import Annotated, Literal

import msgspec

from fairbank.agent.protocol import Action, Verdict, one_line
from fairbank.agent.reports.report import (
    UNBILLABLE_REASON,
    ReportFacts,
    ReportKind,
    ReportResult,
    ResultKind,
)
from fairbank.core.units import round_up

DEFERRED_REASON = "Fairbank_does_not_answer"
"""Reason of jobs that plugins/prep releases by itself when it connects to an agent."""
NO_LIMIT_REASON = "No_time_limit"
AGENT_REASONS: Mapping[str, str] = {
    DEFERRED_REASON: "The bank did not answer when the job was to start. The job is released"
    " as soon as the bank answers.",
    NO_LIMIT_REASON: "The job has no time limit, so its price is not known.",
    UNBILLABLE_REASON: "The bank cannot price the job, such as one of an unknown account or"
    " partition.",
}
"""Further reasons that the plug-in shows in squeue, with a sentence each for users."""

BANK_DOWN_TEXT = "the allocation bank cannot be reached now"
NEVER_STARTED_TEXT = "this start of the job was given up before"
UNREADABLE_TEXT = (
    "Fairbank's plug-in and agent do not understand each other; tell your administrators"
)


RUN = Verdict(action="run")


def refuse(action: Action, result: ReportResult, account: str) -> Verdict:
    """Return the bank's refusal as a verdict carries it.

    Args:
        action: what happens to the job, "hold" or "cancel": `refusal` of its partition's terms.
        result: the bank's answer, with its reason and text.
        account: the account that the text begins with; empty: "no account".
    """
    text = f"{account or 'no account'}: {result.text}"
    return Verdict(action=action, reason=result.reason, text=one_line(text))


def no_time_limit(action: Action) -> Verdict:
    """Return the refusal of a job without a finite limit, whose price is unknown."""
    text = "this job has no time limit, so its price is not known. Set one: -t HH:MM:SS"
    return Verdict(action=action, reason=NO_LIMIT_REASON, text=text)


def defer(text: str, *, batch: bool) -> Verdict:
    """Return the refusal of a job that may start later; Slurm tries a batch job again."""
    retry = "the job is tried again by itself when it can" if batch else "try again later"
    return Verdict(action="hold", reason=DEFERRED_REASON, text=one_line(f"{text}; {retry}"))


class OutagePolicy(Enum):
    """Policy of a partition for prolog requests that the bank does not answer. The default is
    CLOSED: during an outage it is unknown what a job can pay.
    """

    OPEN = "open"
    CLOSED = "closed"
    CREDIT = "credit"


class PartitionTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Terms for the jobs of a partition.

    `patience`: seconds that a job waits for the bank; less than the plug-in's fairbank_patience.
    Once an outage has lasted this long, jobs no longer wait. `outage_policy`: what happens then:
    "open" lets the job run and reports it later, "closed" defers it until the bank is
    back, "credit" lets it run if the credit that was last known pays for it and else defers it.
    `refusal`: what happens to a job without credit: "hold" keeps batch
    jobs in the queue, "cancel" ends them; interactive jobs always end. `unbillable`: jobs for
    which the bank cannot hold credit (unknown account or partition, no time limit, a wrong clock):
    "refuse"; or "run", without a hold. Their ends are reported, and the bank charges them if it
    accepts late charges; an unknown account or partition is refused again: nothing is charged, and
    the refusal is kept. `optimistic_start`: a job starts before the bank has answered if at least
    so many times its price was available a few minutes ago; 0 for never. It saves interactive jobs
    a tenth of a second.
    """

    patience: Annotated[float, msgspec.Meta(gt=0, le=3600, extra={"unit": "seconds"})] = 10.0
    outage_policy: OutagePolicy = OutagePolicy.CLOSED
    refusal: Literal["hold", "cancel"] = "hold"
    unbillable: Literal["refuse", "run"] = "refuse"
    optimistic_start: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0


def answer_deadline(received: float, terms: PartitionTerms, outage_since: float | None) -> float:
    """Return when the agent decides a prolog request without the bank.

    Args:
        received: time of the request.
        outage_since: start of the bank's outage, None while it is up. All times are monotonic.

    Returns:
        The end of the partition's patience, which is counted from the start of the outage or of
        the request, whichever came first. So once one request has waited in vain, no later one
        waits.
    """
    begin = received if outage_since is None else min(received, outage_since)
    return max(received, begin + terms.patience)


FRESH_SECONDS = 300.0
_MIN_PRICE = 600  # SU-minutes from which rounding up does not distort the factor of a QOS


class KnownCredit:
    """Credit and prices that the bank last reported.

    Invariant: each allocation in `_payers` has an entry in `_available`. `_payers` maps
    cluster/account/partition to the allocation that pays, `_factors` a QOS to its price factor.
    `_seen` has the time of each balance; it is not stored: a monotonic clock starts at 0
    with the host.
    """

    def __init__(self) -> None:
        self._payers: dict[str, int] = {}
        self._available: dict[int, int] = {}
        self._factors: dict[str, float] = {}
        self._seen: dict[int, float] = {}

    def learn(self, report: ReportFacts, result: ReportResult, now: float) -> None:
        """Keep the balance and the price in the result of a report.

        Args:
            report: facts of the report.
            result: the bank's answer to it.
            now: monotonic seconds.
        """
        allocation = result.allocation
        if allocation is None or result.available is None:
            return
        if result.kind not in (ResultKind.GRANTED, ResultKind.REFUSED):
            return
        self._payers[_place(report)] = allocation
        self._available[allocation] = result.available
        self._seen[allocation] = now
        if report.do is ReportKind.HOLD and report.qos and result.amount:
            list_price = float(report.billing) * report.time_limit / 60
            if list_price >= _MIN_PRICE:
                self._factors[report.qos] = round(result.amount / list_price, 2)

    def price(self, report: ReportFacts) -> int:
        """Return the price of a run for its whole limit, in SU-minutes."""
        factor = Fraction(str(self._factors.get(report.qos, 1)))
        return round_up(Fraction(report.billing) * report.time_limit / 60 * factor)

    def deduct(self, report: ReportFacts, times: int = 1) -> bool:
        """Subtract the price of a run if so many times its price is available; return whether."""
        payer = self._payers.get(_place(report))
        if payer is None or times * (amount := self.price(report)) > self._available[payer]:
            return False
        self._available[payer] -= amount
        return True

    def is_fresh(self, report: ReportFacts, now: float) -> bool:
        """Return whether the balance that would pay for a run was reported lately."""
        payer = self._payers.get(_place(report))
        return payer is not None and now - self._seen.get(payer, -FRESH_SECONDS) < FRESH_SECONDS

    def dump(self) -> bytes:
        """Return the content for `load`."""
        return msgspec.json.encode((self._payers, list(self._available.items()), self._factors))

    def load(self, stored: bytes) -> None:
        payers, available, factors = msgspec.json.decode(
            stored, type=tuple[dict[str, int], list[tuple[int, int]], dict[str, float]]
        )
        self._payers, self._available, self._factors = payers, dict(available), factors


def _place(report: ReportFacts) -> str:
    return f"{report.cluster}/{report.account}/{report.partition}"


def decide_without_bank(
    terms: PartitionTerms, report: ReportFacts, credit: KnownCredit, *, batch: bool
) -> Verdict | None:
    """Decide a prolog request that the bank did not answer in time.

    Args:
        report: facts of the run's hold report.
        credit: credit that was last known; the price is subtracted if it decides.
        batch: False for an interactive job.

    Returns:
        The refusal, or None if the run may start.
    """
    match terms.outage_policy:
        case OutagePolicy.OPEN:
            return None
        case OutagePolicy.CLOSED:
            return defer(BANK_DOWN_TEXT, batch=batch)
        case OutagePolicy.CREDIT:
            if credit.deduct(report):
                return None
            text = f"{BANK_DOWN_TEXT}, and {report.account} had too little credit left"
            return defer(text, batch=batch)
