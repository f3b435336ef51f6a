"""The table of statuses: one for each kind of refusal, and the kind is known again by it."""

from __future__ import annotations

from fairbank.rest.statuses import STATUS, kind_of
from fairbank.values.refusal_kind import RefusalKind


def test_every_kind_has_a_status_of_its_own() -> None:
    assert set(STATUS) == set(RefusalKind)
    assert [kind_of(status) for status in STATUS.values()] == list(STATUS)
