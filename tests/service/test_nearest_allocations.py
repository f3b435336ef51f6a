"""Nearest allocations that jobs missed, read from the ledger for many jobs at once."""

from __future__ import annotations

import pytest

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.requests import Open
from fairbank.core.time import Instant
from fairbank.service import quotes as quotes_module
from fairbank.service.quotes import UncoveredJob, nearest_allocations
from tests.service.reporting_agent import END, NOW, ReportingSite


def open_allocation(site: ReportingSite, project: int, resource: str, start: int, end: int) -> int:
    request = Open(
        terms=AllocationTerms(
            project=project,
            resource=resource,
            category="startup",
            start=Instant(start),
            end=Instant(end),
        )
    )
    return site.apply(request)[0].allocation or 0


@pytest.mark.parametrize("rows", [1, 2, 3, 1_000])
def test_nearest_allocation_has_the_job_project_and_resource_on_any_page(
    site: ReportingSite, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    site.project("faculty", 1, shared=True)
    site.project("group", 2, parent=1)
    site.project("bio", 3)
    late, gpu = (
        open_allocation(site, 2, "cpu", END + 50, END + 60),
        open_allocation(site, 2, "gpu", NOW, END),
    )
    before, after, on_gpu, bio, none = (
        UncoveredJob((2, 1), "cpu", NOW - 1),
        UncoveredJob((2, 1), "cpu", END + 40),
        UncoveredJob((2, 1), "gpu", END + 40),
        UncoveredJob((3,), "cpu", END),
        UncoveredJob((3,), "gpu", END),
    )
    monkeypatch.setattr(quotes_module, "PAGE_MAX", rows)
    result = nearest_allocations(site.services.store, {before, after, on_gpu, bio, none})
    assert {job: allocation.id for job, allocation in result.items()} == {
        before: 1,
        after: late,
        on_gpu: gpu,
        bio: 3,
    }
