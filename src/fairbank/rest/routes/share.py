"""Fair share from day to day: recorded by a cluster, read by its people."""

from __future__ import annotations

from typing import Annotated

from litestar import post
from litestar.params import JSONBody, QueryParameter

from fairbank.cluster.share_record import ShareQuery, share_key
from fairbank.core.errors import Malformed
from fairbank.core.time import DAY, LAST_INSTANT, iso
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import PERIOD, Limit, OneName, OnePeriod
from fairbank.rest.bodies.answers import Listing, ShareDay, SharesKept, Single
from fairbank.rest.bodies.requests import NewShares
from fairbank.rest.foretelling import FORETOLD_IN_ITS_WORDS
from fairbank.rest.verbs import reads, writes
from fairbank.rest.views import (
    cut,
    figures_told,
    key_text,
    listing,
    moment_of,
    parse_key,
    share_day,
    single,
)
from fairbank.service.access.permissions import check_cluster

AfterPlace = Annotated[
    str | None, QueryParameter(max_length=300, description="`next` of the page before")
]
Users = Annotated[bool, QueryParameter(description="also the users in the accounts")]


@reads("/share", dependencies={"period": PERIOD})
def list_shares(
    request: Asking,
    period: OnePeriod,
    cluster: OneName = None,
    account: OneName = None,
    users: Users = False,
    limit: Limit = 100,
    after: AfterPlace = None,
) -> Listing[ShareDay]:
    """How accounts stood on the days from since up to until, by cluster and day.

    Staff see all, a cluster's agents all of theirs, others the accounts of their projects, and the users in those that they lead.
    """
    query = ShareQuery(
        since=0 if period.since is None else -(-period.since // DAY),
        until=LAST_INSTANT // DAY + 1 if period.until is None else -(-period.until // DAY),
        cluster=cluster,
        accounts=None if account is None else frozenset({account}),
        users=users,
        after=None if after is None else parse_key(after),
        limit=limit + 1,
    )
    kept = request.services.shares.find(request.asker, query)
    found, following = cut(limit, kept, lambda each: key_text(share_key(each)))
    return listing(
        "share-figure", request.services.clock, [share_day(each) for each in found], following
    )


@writes(post, "/share", status_code=200, opt=FORETOLD_IN_ITS_WORDS)
def record_shares(request: Asking, data: JSONBody[NewShares]) -> Single[SharesKept]:
    """Keep how the associations of a cluster stand, once a day (UTC): of one that has figures of that day already those stay.

    By the cluster's agents, and superusers. Larger clusters are told in several requests.
    """
    check_cluster(
        request.asker, data.cluster, "record the fair share"
    )  # before the rows are looked at
    at = moment_of(data.at)
    if at > request.services.clock.now() + DAY:
        raise Malformed(
            f"{iso(at)} has not come yet", field="at", remedy="see that the clocks agree"
        )
    figures = figures_told(data, at)
    kept = request.services.shares.record(request.asker, data.cluster, figures)
    row = SharesKept(cluster=data.cluster, day=iso(at)[:10], kept=kept, there=len(figures) - kept)
    return single("shares-kept", request.services.clock, row)


ROUTES = (list_shares, record_shares)
