"""Requests of a replay follow from the trace and from the bank's answers."""

from __future__ import annotations

from io import BytesIO

import pytest

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
        is_first = request.reported.run.job_id == 1
        runs.take(request, Refusal(Reason.INSUFFICIENT_CREDIT) if is_first else Done(1, amount=1))
        seen.append((submitted.at, type(request), request.reported.run.job_id, request.amount))
    assert seen == [(0, Hold, 1, 1), (100, Hold, 2, 1), (160, Charge, 2, 1)]
    assert (runs.counts.refusals, runs.counts.expected) == ({"INSUFFICIENT_CREDIT": 1}, {"cpu": 1})


@pytest.mark.parametrize(
    ("partition", "gpu_processors", "tres"),
    [(1, 8, "cpu=16,gres/gpu=2"), (1, None, "cpu=16"), (2, 8, "cpu=16")],
)
def test_gpus_of_a_replay_follow_from_the_processors(
    partition: int, gpu_processors: int | None, tres: str
) -> None:
    header = b"; Partition: 1 gpu\n; Partition: 2 cpu\n"
    line = b"1 0 0 60 16 -1 -1 16 60 -1 1 12 7 1 1 %d -1 -1\n" % partition
    trace = read(BytesIO(header + line))
    plan = ReplayPlan(cluster="trace", gpu_processors=gpu_processors)
    requests = ReplayRuns(trace.header, Policy(), Payer.GROUP, {7: 1}, plan).requests(
        trace.jobs, None
    )
    hold = next(requests).request
    assert isinstance(hold, Hold)
    assert hold.reported.job_details is not None
    assert hold.reported.job_details.tres == tres
