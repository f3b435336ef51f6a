"""Last links of the journal's hash chains. `fairbank audit verify` checks the chains themselves."""

from __future__ import annotations

from fairbank.core.time import iso
from fairbank.rest.parameters import PAGE, OnePage
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route
from fairbank.rest.schemas.audit import AuditAnswer, AuditCard, ChainHead
from fairbank.rest.schemas.envelope import split_page
from fairbank.service.access.identity import Action, check_allowed


@read_route("/audit", dependencies={"page": PAGE})
def show_heads(request: ApiRequest, page: OnePage) -> AuditAnswer:
    """Return the last link of each journal. A copy stored elsewhere reveals a journal that was
    rewritten from its start.
    """
    check_allowed(request.identity, Action.AUDIT)
    entries, registry, allocations = request.services.audit.state(page.and_one)
    heads, next_ = split_page(page.limit, allocations, lambda head: head.book)
    card = AuditCard(
        entries=entries,
        registry_seq=registry.seq,
        registry_link=registry.link.hex(),
        heads=[
            ChainHead(allocation=head.book, seq=head.seq, link=head.link.hex()) for head in heads
        ],
    )
    as_of = iso(request.services.clock.now())
    return AuditAnswer(schema="fairbank.audit/1", as_of=as_of, data=card, next=next_)


ROUTES = (show_heads,)
