"""Requests of a replay follow from the trace and from the bank's answers."""

from __future__ import annotations

from io import BytesIO

from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import Charge, Hold
from fairbank.bank.rules import Done
from fairbank.simulator.engine.bank_replay import Payer
from fairbank.simulator.engine.replay_requests import ReplayPlan, ReplayRuns
from fairbank.simulator.traces.swf import read


def test_only_an_admitted_run_is_charged() -> None:
    line = b"%d %d 0 60 1 -1 -1 1 60 -1 1 12 7 1 1 1 -1 -1\n"
    trace = read(BytesIO(line % (1, 0) + line % (2, 100)))
    runs = ReplayRuns(trace.header, Policy(), Payer.GROUP, {7: 1}, ReplayPlan(cluster="trace"))
    seen = []
    for submitted in runs.requests(trace.jobs, None):
        request = submitted.request
        assert isinstance(request, Hold | Charge)
        is_first = request.run.job_id == 1
        runs.take(request, Refusal(Reason.INSUFFICIENT_CREDIT) if is_first else Done(1, amount=1))
        seen.append((submitted.at, type(request), request.run.job_id, request.amount))
    assert seen == [(0, Hold, 1, 1), (100, Hold, 2, 1), (160, Charge, 2, 1)]
    assert (runs.counts.refusals, runs.counts.expected) == ({"INSUFFICIENT_CREDIT": 1}, 1)
