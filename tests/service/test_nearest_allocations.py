"""Nearest allocations that jobs missed, read from the ledger for many jobs at once."""

from __future__ import annotations

import pytest

from fairbank.bank.requests import Open
from fairbank.core.time import Instant
from fairbank.service import quotes as room
from fairbank.service.quotes import UncoveredJob, nearest_allocations
from tests.service.reporting_agent import END, NOW, Centre


def opened(centre: Centre, project: int, resource: str, start: int, end: int) -> int:
    request = Open(
        project=project,
        resource=resource,
        category="startup",
        start=Instant(start),
        end=Instant(end),
    )
    return centre.ask(request)[0].allocation or 0


@pytest.mark.parametrize("rows", [1, 2, 3, 1_000])
def test_each_job_has_the_one_of_its_line_and_resource_on_whichever_page_it_is(
    centre: Centre, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    centre.project("faculty", 1, shared=True)
    centre.project("group", 2, parent=1)
    centre.project("bio", 3)
    late, gpu = opened(centre, 2, "cpu", END + 50, END + 60), opened(centre, 2, "gpu", NOW, END)
    before, over, on_gpu, bio, none = (
        UncoveredJob((2, 1), "cpu", NOW - 1),
        UncoveredJob((2, 1), "cpu", END + 40),
        UncoveredJob((2, 1), "gpu", END + 40),
        UncoveredJob((3,), "cpu", END),
        UncoveredJob((3,), "gpu", END),
    )
    monkeypatch.setattr(room, "PAGE_MAX", rows)
    result = nearest_allocations(centre.house.store, {before, over, on_gpu, bio, none})
    assert {job: each.id for job, each in result.items()} == {
        before: 1,
        over: late,
        on_gpu: gpu,
        bio: 3,
    }
