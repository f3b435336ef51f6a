"""Taking an entry back, whatever it did: by the opposite of it, in the same book."""

from __future__ import annotations

from litestar import Response, post
from litestar.params import JSONBody

from fairbank.core import ids
from fairbank.rest.answering import new
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import Key, Number, checked_key
from fairbank.rest.bodies.answers import Granted, Single
from fairbank.rest.bodies.requests import NewUndo
from fairbank.rest.verbs import AGAIN, writes


@writes(post, "/entry/{entry:int}/undo", responses=AGAIN)
def undo_entry(
    request: Asking, entry: Number, data: JSONBody[NewUndo], key: Key = None
) -> Response[Single[Granted]]:
    """Take back what an entry did, once and whole, by another entry that names it in its details (`undoes`).

    A deposit, withdrawal, transfer or refund by the same amount the other way; new terms, a cap or a role by those before, if nothing was
    said of the same since. Whoever may do the opposite may ask this.
    """
    return new(
        request.services.undoing.undo(
            request.asker, entry, ids.reason(data.comment), checked_key(key)
        ),
        request.services.clock,
    )


ROUTES = (undo_entry,)
