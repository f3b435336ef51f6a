"""Who used what, when and where."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal

from litestar.params import FromQuery, QueryParameter

from fairbank.bank.query import GroupPage, UsageBy, UsageQuery
from fairbank.core.errors import Malformed
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import (
    PERIOD,
    RUN_FOR,
    Limit,
    OneId,
    OneName,
    OnePeriod,
    OneUid,
    Projects,
)
from fairbank.rest.bodies.answers import Listing, UsageRow
from fairbank.rest.verbs import reads
from fairbank.rest.views import cut, listing, usage_row

By = Literal["user", "day", "month", "partition", "allocation", "job", "qos"]
AfterGroup = Annotated[
    str | None, QueryParameter(max_length=80, description="`next` of the page before")
]

_GROUPS = {
    UsageBy.USER: re.compile(r"\d{1,10}", re.ASCII),
    UsageBy.ALLOCATION: re.compile(r"\d{1,16}", re.ASCII),
    UsageBy.DAY: re.compile(r"[1-9]\d{3}-\d\d-\d\d", re.ASCII),
    UsageBy.MONTH: re.compile(r"[1-9]\d{3}-\d\d", re.ASCII),
    UsageBy.PARTITION: re.compile(r".*"),
    UsageBy.JOB: re.compile(r".{1,64}/\d{1,10}", re.ASCII),
    UsageBy.QOS: re.compile(r".*"),
}


@reads("/usage", dependencies={"period": PERIOD, "projects": RUN_FOR})
def show_usage(
    request: Asking,
    period: OnePeriod,
    projects: Projects,
    by: FromQuery[By] = "user",
    allocation: OneId = None,
    resource: OneName = None,
    owner_uid: OneUid = None,
    limit: Limit = 100,
    after: AfterGroup = None,
) -> Listing[UsageRow]:
    """Sums over finished runs, in groups; since and until are about their end.

    Project, gid, gname and account name the project that they ran for, whoever paid; allocation is the one that paid, and resource its.
    """
    group_by = UsageBy(by)
    page = GroupPage(limit, _after(after, group_by))
    query = UsageQuery(
        sight=request.asker.sight,
        projects=projects,
        allocation=allocation,
        resource=resource,
        owner=owner_uid,
        since=period.since,
        until=period.until,
    )
    found, following = cut(
        limit, request.services.usage.totals(query, group_by, page.and_one), lambda each: each.group
    )
    return listing("usage", request.services.clock, [usage_row(each) for each in found], following)


def _after(text: str | None, by: UsageBy) -> str | int | None:
    """The group that the page before ended with. Raises Malformed."""
    if text is None:
        return None
    try:
        if not _GROUPS[by].fullmatch(text):
            raise ValueError(text)
        if by in (UsageBy.DAY, UsageBy.MONTH):
            date.fromisoformat(text if by is UsageBy.DAY else f"{text}-01")
    except ValueError as bad:
        raise Malformed(
            f"{text!r} is no {by.value}", field="after", remedy="send the `next` of the page before"
        ) from bad
    return int(text) if by in (UsageBy.USER, UsageBy.ALLOCATION) else text


ROUTES = (show_usage,)
