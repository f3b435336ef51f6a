"""The HTTP status of each kind of refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.values.refusal_kind import RefusalKind

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUS: Mapping[RefusalKind, int] = {
    RefusalKind.CANNOT_BE_PAID: 402,
    RefusalKind.NOT_FOUND: 404,
    RefusalKind.NOT_PERMITTED: 403,
    RefusalKind.CONFLICT: 409,
}


def kind_of(status: int) -> RefusalKind:
    """The kind of the refusal that came with this status; a conflict for one that is not ours."""
    return next((kind for kind, ours in STATUS.items() if ours == status), RefusalKind.CONFLICT)
