"""Meaning of the bank's answers, and the text of a refusal."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.agent.outage_policy import refused as refused_verdict
from fairbank.agent.protocol import TEXT_MAX
from fairbank.agent.reports.report import ResultKind, result_of
from fairbank.rest.schemas.answers import Granted, RefusalDetails, ReportAnswer, RunResolution


def refused(reason: str, remedies: list[str] | None = None) -> ReportAnswer:
    refusal = RefusalDetails(
        reason=reason,
        asked=10,
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


def resolved(state: str, elapsed: int | None) -> ReportAnswer:
    how = msgspec.convert({"state": state, "outcome": None, "elapsed": elapsed}, RunResolution)
    answer = refused("RUN_CLOSED")
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
        (refused("INSUFFICIENT_CREDIT"), ResultKind.REFUSED),
        (refused("NO_ALLOCATION"), ResultKind.REFUSED),
        (refused("HOLD_EXISTS"), ResultKind.HOLD_EXISTS),
        (refused("RUN_CLOSED"), ResultKind.LAPSED),
        (resolved("lapsed", None), ResultKind.LAPSED),
        (resolved("charged", 60), ResultKind.CLOSED),
        (resolved("released", 60), ResultKind.CLOSED),
        (resolved("released", 0), ResultKind.NEVER_STARTED),
        (resolved("released", None), ResultKind.NEVER_STARTED),
        (refused("NO_HOLD"), ResultKind.NO_HOLD),
        (refused("TIMESTAMP_IN_FUTURE"), ResultKind.TOO_EARLY),
        (refused("SOMETHING_NEW"), ResultKind.UNBILLABLE),
        (ReportAnswer(status=404, detail="no such account"), ResultKind.UNBILLABLE),
        (ReportAnswer(status=403, detail="not your cluster"), ResultKind.FORBIDDEN),
        (ReportAnswer(status=401, detail="not authenticated"), ResultKind.FORBIDDEN),
        (ReportAnswer(status=201), ResultKind.UNBILLABLE),
    ],
)
def test_result_of_each_answer(answer: ReportAnswer, expected: ResultKind) -> None:
    assert result_of(answer).kind is expected


def test_refusal_text_fits_into_a_verdict() -> None:
    verdict = refused_verdict(
        "hold",
        result_of(refused("INSUFFICIENT_CREDIT", ["a shorter time limit: -t 1", "more credit"])),
        "chem",
    )
    assert verdict.text == "chem: not enough credit. Try a shorter time limit: -t 1; or more credit"
    long = refused_verdict(
        "cancel", result_of(refused("INSUFFICIENT_CREDIT", ["ü" * 2_000])), "chem"
    )
    assert len(long.text.encode()) <= TEXT_MAX
