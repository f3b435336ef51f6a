"""What an answer of the bank means, and the words in which a no is told."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.rest.bodies.answers import Granted, Refused, ReportAnswer, Resolution
from fairbank.slurm.agent.judging import words
from fairbank.slurm.frames import TEXT_MAX
from fairbank.slurm.report_results import Came, judged


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
        (granted(1, 2), Came.GRANTED),
        (refused("INSUFFICIENT_CREDIT"), Came.REFUSED),
        (refused("NO_ALLOCATION"), Came.REFUSED),
        (refused("HOLD_EXISTS"), Came.TAKEN),
        (refused("RUN_CLOSED"), Came.RESOLVED),
        (resolved("lapsed", None), Came.RESOLVED),
        (resolved("charged", 60), Came.OVER),
        (resolved("released", 60), Came.OVER),
        (resolved("released", 0), Came.NEVER_BEGAN),
        (resolved("released", None), Came.NEVER_BEGAN),
        (refused("NO_HOLD"), Came.NO_HOLD),
        (refused("TIMESTAMP_IN_FUTURE"), Came.EARLY),
        (refused("SOMETHING_NEW"), Came.UNBILLABLE),
        (ReportAnswer(status=404, detail="no such account"), Came.UNBILLABLE),
        (ReportAnswer(status=403, detail="not your cluster"), Came.NOT_ALLOWED),
        (ReportAnswer(status=401, detail="who are you?"), Came.NOT_ALLOWED),
        (ReportAnswer(status=201), Came.UNBILLABLE),
    ],
)
def test_answers(answer: ReportAnswer, came: Came) -> None:
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
