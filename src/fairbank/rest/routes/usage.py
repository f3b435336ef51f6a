"""Usage by user, time, partition, allocation, job or QOS."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal

from litestar.params import FromQuery, QueryParameter

from fairbank.bank.query import GroupPage, UsageBy, UsageQuery
from fairbank.core.errors import InvalidInput
from fairbank.rest.parameters import (
    PERIOD,
    PROJECTS_OF_RUNS,
    Limit,
    OneId,
    OneName,
    OnePeriod,
    OneUid,
    Projects,
)
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route
from fairbank.rest.schemas.envelope import ListResponse, list_response, split_page
from fairbank.rest.schemas.usage import UsageRow, usage_row

By = Literal["user", "day", "month", "partition", "allocation", "job", "qos"]
AfterGroup = Annotated[
    str | None, QueryParameter(max_length=80, description="`next` of the previous page")
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


@read_route("/usage", dependencies={"period": PERIOD, "projects": PROJECTS_OF_RUNS})
def show_usage(
    request: ApiRequest,
    period: OnePeriod,
    projects: Projects,
    by: FromQuery[By] = "user",
    allocation: OneId = None,
    resource: OneName = None,
    owner_uid: OneUid = None,
    limit: Limit = 100,
    after: AfterGroup = None,
) -> ListResponse[UsageRow]:
    """Return sums over finished runs, in groups. `since` and `until` select by the end of a run.

    `project`, `gid`, `gname` and `account` select the project that a run was for, also if
    another one paid.
    `allocation` selects the one that paid, `resource` its resource.
    """
    group_by = UsageBy(by)
    page = GroupPage(limit, _parse_cursor(after, group_by))
    query = UsageQuery(
        visibility=request.identity.visibility,
        projects=projects,
        allocation=allocation,
        resource=resource,
        owner=owner_uid,
        since=period.since,
        until=period.until,
    )
    groups, next_ = split_page(
        limit, request.services.runs.usage(query, group_by, page.and_one), lambda usage: usage.group
    )
    rows = [usage_row(usage) for usage in groups]
    return list_response("usage", request.services.clock, rows, next_)


def _parse_cursor(text: str | None, by: UsageBy) -> str | int | None:
    """Return the group of the last row of the previous page."""
    if text is None:
        return None
    try:
        if not _GROUPS[by].fullmatch(text):
            raise ValueError(text)
        if by in (UsageBy.DAY, UsageBy.MONTH):
            date.fromisoformat(text if by is UsageBy.DAY else f"{text}-01")
    except ValueError as bad:
        raise InvalidInput(
            f"{text!r} is not a {by.value}",
            field="after",
            remedy="send the `next` of the previous page",
        ) from bad
    return int(text) if by in (UsageBy.USER, UsageBy.ALLOCATION) else text


ROUTES = (show_usage,)
