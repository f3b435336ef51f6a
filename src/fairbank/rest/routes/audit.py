"""How far the books are, to be written down elsewhere. Reading them all again is `fairbank audit verify`, on the server's host."""

from __future__ import annotations

from fairbank.core.time import iso
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import PAGE, OnePage
from fairbank.rest.bodies.answers import AuditAnswer, AuditCard, Head
from fairbank.rest.verbs import reads
from fairbank.rest.views import cut
from fairbank.service.access.permissions import Action, check_allowed


@reads("/audit", dependencies={"page": PAGE})
def show_heads(request: Asking, page: OnePage) -> AuditAnswer:
    """The last link of each book. Kept elsewhere, they betray even a journal that was rewritten from the start."""
    check_allowed(request.asker, Action.AUDIT)
    entries, office, found = request.services.audit.state(page.and_one)
    heads, following = cut(page.limit, found, lambda each: each.book)
    card = AuditCard(
        entries=entries,
        office_seq=office.seq,
        office_link=office.link.hex(),
        heads=[Head(allocation=each.book, seq=each.seq, link=each.link.hex()) for each in heads],
    )
    return AuditAnswer(
        schema="fairbank.audit/1",
        as_of=iso(request.services.clock.now()),
        data=card,
        next=following,
    )


ROUTES = (show_heads,)
