"""Taking an entry back, whatever it did: by the opposite of it, in the same book."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, post
from litestar.params import JSONBody, QueryParameter

from fairbank.rest.answering import done_of, new
from fairbank.rest.asking import Asking
from fairbank.rest.asking.lookup import runs_by_id
from fairbank.rest.asking.params import Key, Number, checked_key
from fairbank.rest.bodies.answers import Granted, Listing, PlannedEntry, Single
from fairbank.rest.bodies.requests import NewUndo
from fairbank.rest.verbs import AGAIN, REFUSING, reads, writes
from fairbank.rest.views import changed_terms, listing, planned_entry
from fairbank.values import ids

Comment = Annotated[str, QueryParameter(min_length=1, max_length=ids.COMMENT_MAX, description="why; one line of printable text")]


@writes(post, "/entry/{entry:int}/undo", responses=AGAIN)
def undo_entry(request: Asking, entry: Number, data: JSONBody[NewUndo], key: Key = None) -> Response[Single[Granted]]:
    """Take back what an entry did, once and whole, by another entry that names it in its details (`undoes`).

    A deposit, withdrawal, transfer or refund by the same amount the other way; new terms, a cap or a role by those before, if nothing was
    said of the same since. Whoever may do the opposite may ask this.
    """
    return new(request.house.undoing.undo(request.asker, entry, ids.reason(data.comment), checked_key(key)), request.house.clock)


@reads("/entry/{entry:int}/undo", responses=REFUSING)
def foretell_undo(request: Asking, entry: Number, comment: Comment, key: Key = None) -> Listing[PlannedEntry]:
    """The entries that undoing this one would write now, or what it would be refused for; nothing is changed.

    None where it was done before under the same key.
    """
    told = request.house.undoing.foretell(request.asker, entry, ids.reason(comment), checked_key(key))
    done_of(told.outcome)
    runs = runs_by_id(request, (each.run for each in told.entries))
    rows = [planned_entry(each, runs.get(each.run), changed_terms(told.changes.get(each.id))) for each in told.entries]
    return listing("planned-entry", request.house.clock, rows)


# In this order: Litestar registers the first of a path anew with each that follows, and one that answers by a Response fails then.
ROUTES = (foretell_undo, undo_entry)
