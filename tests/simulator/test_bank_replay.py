"""Runs of a trace as the bank gets them: limits of what memory holds."""

from __future__ import annotations

from io import BytesIO

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.simulator.engine import bank_replay
from fairbank.simulator.engine.bank_replay import distinct, run_events
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.swf import read


def test_more_jobs_of_one_second_than_the_maximum_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bank_replay, "SECOND_MAX", 3)
    jobs = read(
        BytesIO(
            b"".join(
                b"%d 5 0 60 1 -1 -1 1 60 -1 1 12 7 1 1 1 -1 -1\n" % number for number in range(1, 5)
            )
        )
    ).jobs
    with pytest.raises(InvalidInput) as error:
        list(distinct(jobs))
    assert error.value.message == "line 4: more than 3 jobs are submitted in one second"


def test_more_open_jobs_than_the_maximum_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"".join(
        b"%d %d 0 60 1 -1 -1 1 60 -1 1 12 7 1 1 1 -1 -1\n" % (number, number)
        for number in range(1, 5)
    )
    monkeypatch.setattr(bank_replay, "OPEN_MAX", 4)
    assert len(list(run_events(Header(), read(BytesIO(lines)).jobs))) == 8
    apart = lines.replace(b" 0 60 ", b" 0 0 ")
    monkeypatch.setattr(bank_replay, "OPEN_MAX", 2)
    assert len(list(run_events(Header(), read(BytesIO(apart)).jobs))) == 8
    monkeypatch.setattr(bank_replay, "OPEN_MAX", 3)
    with pytest.raises(InvalidInput) as error:
        list(run_events(Header(), read(BytesIO(lines)).jobs))
    assert error.value.message == "job 4: more than 3 jobs wait or run at one time"
