"""HTTP statuses: one for each kind of refusal and each error class."""

from __future__ import annotations

from fairbank.core.errors import Busy, Trouble, Unknown
from fairbank.core.refusal_kind import RefusalKind
from fairbank.rest.statuses import OF_TROUBLE, STATUS, kind_of, status_of


def test_every_refusal_kind_has_its_own_status() -> None:
    assert set(STATUS) == set(RefusalKind)
    assert [kind_of(status) for status in STATUS.values()] == list(STATUS)


def test_every_error_class_has_a_status() -> None:
    assert {
        each for each in Trouble.__subclasses__() if each.__module__ == Trouble.__module__
    } < set(OF_TROUBLE)

    class NoPath(Unknown):
        """A door's own way to tell one."""

    assert [status_of(each) for each in (NoPath("x"), Busy("x"), Trouble("x"))] == [404, 503, 500]
