"""Who used what, when and where."""

from __future__ import annotations

from typing import Literal

from litestar.params import FromQuery

from fairbank.bank.query import UsageBy, UsageQuery
from fairbank.rest.asking import Asking
from fairbank.rest.bodies.answers import Listing, UsageRow
from fairbank.rest.params import PERIOD, PROJECTS, OneId, OneName, OnePeriod, OneUid, Projects
from fairbank.rest.verbs import reads
from fairbank.rest.views import listing, usage_row

By = Literal["user", "day", "month", "partition", "allocation"]


@reads("/usage", dependencies={"period": PERIOD, "projects": PROJECTS})
def show_usage(
    request: Asking,
    period: OnePeriod,
    projects: Projects,
    by: FromQuery[By] = "user",
    allocation: OneId = None,
    resource: OneName = None,
    owner_uid: OneUid = None,
) -> Listing[UsageRow]:
    """Sums over finished runs, in groups; since and until are about their end."""
    query = UsageQuery(
        sight=request.asker.sight,
        projects=projects,
        allocation=allocation,
        resource=resource,
        owner=owner_uid,
        since=period.since,
        until=period.until,
    )
    return listing("usage", request.house.clock, [usage_row(each) for each in request.house.usage.by(query, UsageBy(by))])


ROUTES = (show_usage,)
