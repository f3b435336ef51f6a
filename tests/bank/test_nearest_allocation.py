"""Nearest allocation of a job that none covers, and the message about it."""

from __future__ import annotations

import pytest

from fairbank.bank.allocation import Allocation, AllocationState, AllocationTerms
from fairbank.bank.refusals import Reason, Refusal, RemedyFacts, nearest, remedies, sentence
from fairbank.core.time import Instant

LINE = (2, 1)


def an_allocation(
    number: int,
    start: int,
    end: int,
    *,
    project: int = 2,
    shared: bool = False,
    ended: bool = False,
) -> Allocation:
    state = AllocationState.ENDED if ended else AllocationState.ACTIVE
    begin, over = Instant(start), Instant(end)
    return Allocation(
        id=number,
        terms=AllocationTerms(
            project=project, resource="cpu", category="x", start=begin, end=over, shared=shared
        ),
        state=state,
    )


@pytest.mark.parametrize(
    ("start", "expected"),
    [(50, 5), (99, 5), (210, 5), (290, 6), (450, None)],
    ids=[
        "before all",
        "a second early",
        "just over",
        "nearer the next",
        "within one that was ended before it began",
    ],
)
def test_nearest_allocation_begins_or_ended_nearest(start: int, expected: int | None) -> None:
    allocations = [an_allocation(5, 100, 200), an_allocation(6, 300, 400)]
    if expected is None:
        allocations = [an_allocation(7, 451, 452, ended=True)]
    near = nearest(LINE, "cpu", allocations, start)
    assert (near.id if near else None) == expected


def test_only_shared_allocations_of_parents_count() -> None:
    own, shared = (
        an_allocation(5, 100, 200, project=1),
        an_allocation(6, 500, 600, project=1, shared=True),
    )
    near = nearest(LINE, "cpu", [own, shared, an_allocation(7, 60, 70, project=3)], 50)
    assert near == shared


def test_allocations_of_other_resources_do_not_count() -> None:
    assert nearest(LINE, "gpu", [an_allocation(5, 100, 200)], 50) is None


def test_remedy_for_an_ended_allocation_is_to_reopen_it() -> None:
    no = Refusal(reason=Reason.NO_ALLOCATION, requested=60, project=2, resource="cpu", start=210)
    known = RemedyFacts(account="chem", nearest=an_allocation(5, 100, 200))
    assert sentence(no, known).endswith(
        "the start of the job is 1970-01-01T00:03:30Z, allocation 5 ended at 1970-01-01T00:03:20Z."
    )
    assert remedies(no, known) == (
        "extend it, by staff: fairbank alloc reopen 5 --end ... --reason '...'",
    )
