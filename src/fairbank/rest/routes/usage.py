"""Usage in groups and of the whole centre, and daily fair-share values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from litestar import post
from litestar.params import FromQuery, JSONBody, QueryParameter

from fairbank.bank.query import PAGE_MAX, GroupPage, Usage, UsageQuery
from fairbank.cluster.share import ShareQuery
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY, LAST_INSTANT, Instant, iso
from fairbank.core.time_zone import ZoneOffsets, zone_offsets
from fairbank.core.usage_groups import OTHERS, UsageBy
from fairbank.rest.dry_run import SAME_RESPONSE
from fairbank.rest.parameters import (
    PERIOD,
    PROJECTS_OF_ACCOUNTS,
    Limit,
    ManyIds,
    ManyNames,
    ManyUids,
    OneName,
    OnePeriod,
    Period,
    Projects,
)
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route, write_route
from fairbank.rest.schemas.answers import ItemResponse, ListResponse
from fairbank.rest.schemas.envelope import envelope, item_response, page_response, split_page
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
from fairbank.rest.schemas.usage import CentreFigures, UsageResponse, centre_figures, usage_row
from fairbank.service.access.identity import check_cluster
from fairbank.service.runs import Runs

if TYPE_CHECKING:
    By = str
else:
    By = Literal[tuple(kind.value for kind in UsageBy)]
AfterGroup = Annotated[
    str | None, QueryParameter(max_length=1_000, description="`next` of the previous page")
]
Largest = Annotated[
    Literal["group", "largest"],
    QueryParameter(
        description="largest: the `limit` largest rows of each unit and the others, without `next`"
    ),
]


@read_route("/usage", dependencies={"period": PERIOD, "projects": PROJECTS_OF_ACCOUNTS})
def show_usage(
    request: ApiRequest,
    period: OnePeriod,
    projects: Projects,
    by: FromQuery[By] = "user",
    allocation: ManyIds = None,
    resource: ManyNames = None,
    owner_uid: ManyUids = None,
    order: Largest = "group",
    limit: Limit = 100,
    after: AfterGroup = None,
) -> UsageResponse:
    """Return sums over finished runs, in groups. `since` and `until` select by the end of a run;
    without `since` all earlier runs count, and the default `until` is now. Days, ISO weeks and
    months are those of `zone`.

    `project`, `gid`, `gname` and `account` select the project that a run was for, also if
    another one paid. `allocation` selects the one that paid, `resource` its resource. These two,
    `account` and `owner_uid` may be repeated.
    A group has a row for each unit: `resource` and `clusters`, which have the same prices. Do not
    add amounts of different units. Measured use of a resource that no cluster bills is one unit,
    with empty `clusters`.

    With `order=largest` the last rows have the group `(others)`: in each unit what the limit leaves
    out, so that the rows add up to `totals`. Of days, weeks and months the latest are kept.
    """
    group_by = UsageBy(by)
    page = _group_page(limit, after, order, group_by)
    until, offsets = _end_and_offsets(period, request.services.clock.now(), group_by)
    query = UsageQuery(
        visibility=request.identity.job_visibility,
        projects=projects,
        allocations=None if allocation is None else frozenset(allocation),
        resources=None if resource is None else frozenset(resource),
        owners=None if owner_uid is None else frozenset(owner_uid),
        since=period.since,
        until=until,
        offsets=offsets,
    )
    rows, units, next_ = _usage(request.services.runs, query, group_by, page)
    has_names = group_by in (UsageBy.PROJECT, UsageBy.USER)
    names = {row.key: _group_name(request, row, group_by) for row in rows if has_names}
    return UsageResponse(
        **envelope(UsageResponse, request.context),
        data=[usage_row(row, names.get(row.key, row.group)) for row in rows],
        next=next_,
        totals=[usage_row(unit, None) for unit in units],
        zone=str(period.zone),
        since=None if period.since is None else iso(period.since),
        until=iso(until),
    )


def _end(period: Period, now: Instant) -> Instant:
    """Return the end of the period. By default what ended in this second counts, and no later run,
    as that of a host whose clock is ahead of the bank's.
    """
    return Instant(now + 1) if period.until is None else period.until


def _end_and_offsets(period: Period, now: Instant, by: UsageBy) -> tuple[Instant, ZoneOffsets]:
    """Return the end of the period, and its offsets from UTC if the groups are times."""
    until = _end(period, now)
    if not by.is_time:
        return until, ()
    # Offsets need an end, and no clock is that far ahead.
    latest = min(now + 7 * DAY, until)
    return until, zone_offsets(period.zone, period.since or 0, latest)


def _group_name(request: ApiRequest, row: Usage, by: UsageBy) -> str | int | None:
    """Return the account of a project, or the uid of a user: None for measured use."""
    if by is UsageBy.PROJECT and row.group != OTHERS:
        return request.services.project_cache.by_id(int(row.group)).account
    # Jobs of users who have no uid here have the same group, but are counted.
    return None if row.group == ids.OVERFLOW_UID and not row.runs else row.group


def _usage(
    runs: Runs, query: UsageQuery, by: UsageBy, page: GroupPage
) -> tuple[list[Usage], list[Usage], str | None]:
    """Return the rows of a page, the sums of each unit, and the cursor of the next page.

    Args:
        runs: use case that reads them.
        query: selects the runs.
        by: kind of the groups.
        page: the page of groups; of the largest ones there is only one, with the others in a row.
    """
    if page.largest:
        rows, next_ = runs.usage(query, by, page), None
    else:
        rows, next_ = split_page(page.limit, runs.usage(query, by, page.and_one), _cursor)
    # Further pages may be many, and each sum reads all runs.
    units = [] if page.after else runs.usage(query, UsageBy.RESOURCE, GroupPage(PAGE_MAX))
    if page.largest:
        rows = [*rows, *filter(None, (unit.others(rows) for unit in units))]
    return rows, units, next_


_GroupNumber = Annotated[int, msgspec.Meta(ge=0, le=ids.ID_MAX)]
_GroupName = Annotated[str, msgspec.Meta(pattern=r"\A[^\0]*\Z")]
_CENTRE_DAYS = 30


@read_route("/centre", dependencies={"period": PERIOD})
def show_centre(request: ApiRequest, period: OnePeriod) -> ItemResponse[CentreFigures]:
    """Return capacity, granted and used credit of each resource in a period, for staff. The default
    period is the last 30 days, as capacity needs a start. A run counts where it ended.
    """
    until = _end(period, request.services.clock.now())
    since = Instant(max(0, until - _CENTRE_DAYS * DAY)) if period.since is None else period.since
    if since >= until:
        raise InvalidInput("the period is empty", field="since", remedy="send an earlier since")
    use = request.services.centre.use(request.identity, since, until)
    return item_response(request.context, centre_figures(use, since, until))


_BY_NUMBER = (UsageBy.USER, UsageBy.PROJECT, UsageBy.ALLOCATION)


def _cursor(row: Usage) -> str:
    return msgspec.json.encode(row.key).decode()


def _group_page(limit: int, after: str | None, order: str, by: UsageBy) -> GroupPage:
    """Return the page that a request asks for. Raises InvalidInput if it cannot exist."""
    page = GroupPage(limit, _parse_cursor(after, by), largest=order == "largest")
    if page.largest and after is not None:
        raise InvalidInput(
            "the largest rows have no further page",
            field="after",
            remedy="leave it out, or send order=group",
        )
    return page


def _parse_cursor(text: str | None, by: UsageBy) -> tuple[str | int, str, str] | None:
    """Return the key of the last row of the previous page."""
    if text is None:
        return None
    try:
        if by in _BY_NUMBER:
            return msgspec.json.decode(text, type=tuple[_GroupNumber, _GroupName, _GroupName])
        return msgspec.json.decode(text, type=tuple[_GroupName, _GroupName, _GroupName])
    except ValueError as bad:
        raise InvalidInput(
            f"{text[:40]!r} is not a cursor of rows by {by.value}",
            field="after",
            remedy="send the `next` of the previous page",
        ) from bad


AfterShare = Annotated[
    str | None, QueryParameter(max_length=3_200, description="`next` of the previous page")
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
    the users in those where they are PI or coordinator; all, if `visible_jobs` is "all".
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
    shares = request.services.shares.find(request.identity, query)
    return page_response(ShareDay, request.context, limit, shares, share_day, share_cursor)


@write_route(post, "/share", status_code=200, opt={**SAME_RESPONSE, "scope": "report"})
def record_shares(request: ApiRequest, data: JSONBody[NewShares]) -> ItemResponse[SharesKept]:
    """Store the fair-share values of a cluster, once a day (UTC). Values that an association
    already has for that day stay.

    Allowed for the agents of the cluster and for superusers. Large clusters send several requests.
    """
    # Before the rows are checked.
    clusters = request.services.clusters
    check_cluster(request.identity, data.cluster, clusters, "record the fair share")
    at = parse_when(data.at, field="at")
    if at > request.services.clock.now() + DAY:
        raise InvalidInput(
            f"{iso(at)} is in the future", field="at", remedy="synchronise the clocks (NTP)"
        )
    records = share_records(data, at)
    kept = request.services.shares.record(request.identity, data.cluster, records)
    row = SharesKept(cluster=data.cluster, day=iso(at)[:10], kept=kept, present=len(records) - kept)
    return item_response(request.context, row)
