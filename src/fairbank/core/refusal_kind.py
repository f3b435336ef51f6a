"""Kinds of refusals, the same for every interface."""

from __future__ import annotations

from enum import Enum


class RefusalKind(Enum):
    """Kind of refusal. `rest.statuses` has the HTTP statuses, `cli.framework.exit_codes` the exit
    codes.
    """

    CANNOT_BE_PAID = "it cannot be paid"
    NOT_FOUND = "there is no such thing"
    NOT_PERMITTED = "the asker may not do this"
    CONFLICT = "it is there with other content, or its state does not allow this"
