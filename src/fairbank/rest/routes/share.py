"""Daily fair-share values: stored by the agent of a cluster, read by its users."""

from __future__ import annotations

from typing import Annotated

from litestar import post
from litestar.params import JSONBody, QueryParameter

from fairbank.cluster.share_record import ShareQuery
from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY, LAST_INSTANT, iso
from fairbank.rest.dry_run import SAME_RESPONSE
from fairbank.rest.parameters import PERIOD, Limit, OneName, OnePeriod
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route, write_route
from fairbank.rest.schemas.envelope import (
    ItemResponse,
    ListResponse,
    item_response,
    list_response,
    split_page,
)
from fairbank.rest.schemas.requests import parse_when
from fairbank.rest.schemas.share import (
    NewShares,
    ShareDay,
    SharesKept,
    parse_share_cursor,
    share_cursor,
    share_day,
    share_records,
)
from fairbank.service.access.identity import check_cluster

AfterShare = Annotated[
    str | None, QueryParameter(max_length=300, description="`next` of the previous page")
]
Users = Annotated[bool, QueryParameter(description="include the users of the accounts")]


@read_route("/share", dependencies={"period": PERIOD})
def list_shares(
    request: ApiRequest,
    period: OnePeriod,
    cluster: OneName = None,
    account: OneName = None,
    users: Users = False,
    limit: Limit = 100,
    after: AfterShare = None,
) -> ListResponse[ShareDay]:
    """List the fair-share values of accounts on each day since <= day < until, by cluster and day.

    Staff see all, an agent all of its cluster. Other users see the accounts of their projects, and
    the users in those where they are PI or coordinator.
    """
    query = ShareQuery(
        # The first day that begins in the period, and the first one that begins after it.
        since=0 if period.since is None else -(-period.since // DAY),
        until=LAST_INSTANT // DAY + 1 if period.until is None else -(-period.until // DAY),
        cluster=cluster,
        accounts=None if account is None else frozenset({account}),
        users=users,
        after=None if after is None else parse_share_cursor(after),
        limit=limit + 1,
    )
    records, next_ = split_page(
        limit, request.services.shares.find(request.identity, query), share_cursor
    )
    rows = [share_day(record) for record in records]
    return list_response("share-figure", request.services.clock, rows, next_)


@write_route(post, "/share", status_code=200, opt=SAME_RESPONSE)
def record_shares(request: ApiRequest, data: JSONBody[NewShares]) -> ItemResponse[SharesKept]:
    """Store the fair-share values of a cluster, once a day (UTC). Values that an association
    already has for that day stay.

    Allowed for the agents of the cluster and for superusers. Large clusters send several requests.
    """
    # Before the rows are checked.
    check_cluster(request.identity, data.cluster, "record the fair share")
    at = parse_when(data.at, field="at")
    if at > request.services.clock.now() + DAY:
        raise InvalidInput(
            f"{iso(at)} is in the future", field="at", remedy="synchronise the clocks (NTP)"
        )
    records = share_records(data, at)
    kept = request.services.shares.record(request.identity, data.cluster, records)
    row = SharesKept(cluster=data.cluster, day=iso(at)[:10], kept=kept, present=len(records) - kept)
    return item_response("shares-kept", request.services.clock, row)


ROUTES = (list_shares, record_shares)
