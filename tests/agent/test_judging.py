"""What an answer of the bank means, and the words in which a no is told."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.rest.bodies.answers import Granted, Refused, ReportAnswer, Resolution
from fairbank.slurm.agent.judging import words
from fairbank.slurm.frames import TEXT_MAX
from fairbank.slurm.report_results import ReportResult, judged


def refused(reason: str, remedies: list[str] | None = None) -> ReportAnswer:
    no = Refused(
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
    return ReportAnswer(status=402, detail="not enough credit.", refusal=no)


def resolved(state: str, elapsed: int | None) -> ReportAnswer:
    how = msgspec.convert({"state": state, "outcome": None, "elapsed": elapsed}, Resolution)
    no = refused("RUN_CLOSED")
    return msgspec.structs.replace(
        no,
        status=409,
        refusal=msgspec.structs.replace(no.refusal, resolution=how),  # type: ignore[type-var]
    )


def granted(amount: int, available: int) -> ReportAnswer:
    return ReportAnswer(
        status=201,
        granted=Granted(entry=1, amount=amount, allocation=7, run=1, available=available),
    )


@pytest.mark.parametrize(
    ("answer", "came"),
    [
        (granted(1, 2), ReportResult.GRANTED),
        (refused("INSUFFICIENT_CREDIT"), ReportResult.REFUSED),
        (refused("NO_ALLOCATION"), ReportResult.REFUSED),
        (refused("HOLD_EXISTS"), ReportResult.TAKEN),
        (refused("RUN_CLOSED"), ReportResult.RESOLVED),
        (resolved("lapsed", None), ReportResult.RESOLVED),
        (resolved("charged", 60), ReportResult.OVER),
        (resolved("released", 60), ReportResult.OVER),
        (resolved("released", 0), ReportResult.NEVER_BEGAN),
        (resolved("released", None), ReportResult.NEVER_BEGAN),
        (refused("NO_HOLD"), ReportResult.NO_HOLD),
        (refused("TIMESTAMP_IN_FUTURE"), ReportResult.EARLY),
        (refused("SOMETHING_NEW"), ReportResult.UNBILLABLE),
        (ReportAnswer(status=404, detail="no such account"), ReportResult.UNBILLABLE),
        (ReportAnswer(status=403, detail="not your cluster"), ReportResult.NOT_ALLOWED),
        (ReportAnswer(status=401, detail="who are you?"), ReportResult.NOT_ALLOWED),
        (ReportAnswer(status=201), ReportResult.UNBILLABLE),
    ],
)
def test_answers(answer: ReportAnswer, came: ReportResult) -> None:
    assert judged(answer).came is came


def test_a_no_is_put_in_words_that_fit_into_a_verdict() -> None:
    no = words(
        "hold",
        judged(refused("INSUFFICIENT_CREDIT", ["a shorter time limit: -t 1", "more credit"])),
        "chem",
    )
    assert no.text == "chem: not enough credit. Try a shorter time limit: -t 1; or more credit"
    long = words("cancel", judged(refused("INSUFFICIENT_CREDIT", ["ü" * 2_000])), "chem")
    assert len(long.text.encode()) <= TEXT_MAX
