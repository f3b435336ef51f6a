"""Tree of errors: the docstring of FairbankError lists each class."""

from __future__ import annotations

import re

from fairbank.core import errors
from fairbank.core.errors import Busy, Conflict, FairbankError, Unauthenticated

TABLE = re.findall(r"\+ (\w+) ", FairbankError.__doc__ or "")


def test_tree_lists_every_error() -> None:
    defined = [
        name
        for name, member in vars(errors).items()
        if isinstance(member, type)
        and issubclass(member, FairbankError)
        and member is not FairbankError
    ]
    assert defined == TABLE


def test_error_has_a_message_a_field_and_a_remedy() -> None:
    no = Conflict("the group is taken", field="gname", remedy="choose another")
    assert (str(no), no.message, no.field, no.remedy, no.title) == (
        "the group is taken",
        "the group is taken",
        "gname",
        "choose another",
        "conflict",
    )
    assert (FairbankError("x").field, FairbankError("x").remedy) == (None, None)
    assert Unauthenticated("who are you?").title == "unauthenticated"


def test_busy_error_has_the_time_to_retry() -> None:
    no = Busy("too much is waiting", retry_after_seconds=3)
    assert no.retry_after_seconds == 3
    assert no.remedy == "try again in 3 s; the request was not carried out"
