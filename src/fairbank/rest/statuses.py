"""The HTTP status of each kind of refusal, and of each kind of trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.core.errors import (
    Busy,
    Conflict,
    Corrupt,
    Forbidden,
    Malformed,
    Trouble,
    Unauthenticated,
    Unknown,
    Unreachable,
)
from fairbank.core.refusal_kind import RefusalKind

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUS: Mapping[RefusalKind, int] = {
    RefusalKind.CANNOT_BE_PAID: 402,
    RefusalKind.NOT_FOUND: 404,
    RefusalKind.NOT_PERMITTED: 403,
    RefusalKind.CONFLICT: 409,
}

OF_TROUBLE: Mapping[type[Trouble], int] = {
    Malformed: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    Unknown: 404,
    Conflict: 409,
    Busy: 503,
    Unreachable: 503,
    Corrupt: 500,
    Trouble: 500,
}


def kind_of(status: int) -> RefusalKind:
    """The kind of the refusal that came with this status; a conflict for one that is not ours."""
    return next((kind for kind, ours in STATUS.items() if ours == status), RefusalKind.CONFLICT)


def status_of(trouble: Trouble) -> int:
    """The status that tells this trouble."""
    return next(OF_TROUBLE[kind] for kind in type(trouble).__mro__ if kind in OF_TROUBLE)
