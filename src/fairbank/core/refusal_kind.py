"""The kinds of the bank's no: what every program, whatever it speaks, tells apart."""

from __future__ import annotations

from enum import Enum


class RefusalKind(Enum):
    """`rest.statuses` says which HTTP status each is, `cli.exits` which exit code."""

    CANNOT_BE_PAID = "it cannot be paid"
    NOT_FOUND = "there is no such thing"
    NOT_PERMITTED = "the asker may not do this"
    CONFLICT = "it is there with other content, or its state does not allow this"
