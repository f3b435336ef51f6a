"""Meaning of the bank's answers, and the text of a refusal."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.agent.outage_policy import refuse as refused_verdict
from fairbank.agent.protocol import TEXT_MAX
from fairbank.agent.reports.report import BY_REASON, ResultKind, result_of
from fairbank.bank.refusals import Reason
from fairbank.rest.schemas.answers import Granted, RefusalDetails, ReportAnswer, RunResolution


def refuse(reason: str, remedies: list[str] | None = None) -> ReportAnswer:
    refusal = RefusalDetails(
        reason=reason,
        requested=10,
        available=4,
        shortfall=6,
        allocation=7,
        project=1,
        resource="cpu",
        owner=1,
        run="r",
        entry=1,
        remedies=remedies or [],
    )
    return ReportAnswer(status=402, detail="not enough credit.", refusal=refusal)


def test_every_reason_with_a_result_of_its_own_is_one_of_the_bank() -> None:
    """The agent must not import the bank, so it has the reasons as text."""
    assert BY_REASON.keys() <= {reason.name for reason in Reason}


def resolved(state: str, elapsed: int | None) -> ReportAnswer:
    how = msgspec.convert({"state": state, "outcome": None, "elapsed": elapsed}, RunResolution)
    answer = refuse("RUN_CLOSED")
    return msgspec.structs.replace(
        answer,
        status=409,
        refusal=msgspec.structs.replace(answer.refusal, resolution=how),  # type: ignore[type-var]
    )


def granted(amount: int, available: int) -> ReportAnswer:
    return ReportAnswer(
        status=201,
        granted=Granted(entry=1, amount=amount, allocation=7, run=1, available=available),
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (granted(1, 2), ResultKind.GRANTED),
        (refuse("INSUFFICIENT_CREDIT"), ResultKind.REFUSED),
        (refuse("NO_ALLOCATION"), ResultKind.REFUSED),
        (refuse("HOLD_EXISTS"), ResultKind.HOLD_EXISTS),
        (refuse("RUN_CLOSED"), ResultKind.LAPSED),
        (resolved("lapsed", None), ResultKind.LAPSED),
        (resolved("charged", 60), ResultKind.CLOSED),
        (resolved("released", 60), ResultKind.CLOSED),
        (resolved("released", 0), ResultKind.NEVER_STARTED),
        (resolved("released", None), ResultKind.NEVER_STARTED),
        (refuse("NO_HOLD"), ResultKind.NO_HOLD),
        (refuse("TIMESTAMP_IN_FUTURE"), ResultKind.TOO_EARLY),
        (refuse("SOMETHING_NEW"), ResultKind.UNBILLABLE),
        (ReportAnswer(status=404, detail="no such account"), ResultKind.UNBILLABLE),
        (ReportAnswer(status=403, detail="not your cluster"), ResultKind.FORBIDDEN),
        (
            ReportAnswer(status=404, detail="there is no cluster 'x'", field="cluster"),
            ResultKind.UNKNOWN_CLUSTER,
        ),
        (ReportAnswer(status=401, detail="not authenticated"), ResultKind.FORBIDDEN),
        (ReportAnswer(status=201), ResultKind.UNBILLABLE),
    ],
)
def test_result_of_each_answer(answer: ReportAnswer, expected: ResultKind) -> None:
    assert result_of(answer).kind is expected


def test_refusal_text_fits_into_a_verdict() -> None:
    verdict = refused_verdict(
        "hold",
        result_of(refuse("INSUFFICIENT_CREDIT", ["a shorter time limit: -t 1", "more credit"])),
        "chem",
    )
    assert (
        verdict.text
        == "chem: not enough credit. Remedy: a shorter time limit: -t 1; or more credit"
    )
    long = refused_verdict(
        "cancel", result_of(refuse("INSUFFICIENT_CREDIT", ["ü" * 2_000])), "chem"
    )
    assert len(long.text.encode()) <= TEXT_MAX
