"""Parameters that several routes share, parsed into values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, tzinfo
from typing import Annotated, Literal, NamedTuple

from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, HeaderParameter, PathParameter, QueryParameter

from fairbank.bank.query import ALL, PAGE_MAX, JobRowQuery, Page, ProjectQuery
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant, iso, parse_instant
from fairbank.core.time_zone import parse_zone
from fairbank.rest.request import ApiRequest

Number = Annotated[int, PathParameter(ge=1, le=ids.ID_MAX)]
UidNumber = Annotated[int, PathParameter(ge=0, le=ids.UID_MAX)]
OneId = Annotated[int | None, QueryParameter(ge=1, le=ids.ID_MAX)]
OneUid = Annotated[int | None, QueryParameter(ge=0, le=ids.UID_MAX)]
JobId = Annotated[int | None, QueryParameter(ge=1, le=ids.JOB_ID_MAX)]
OneName = Annotated[str | None, QueryParameter(max_length=ids.NAME_MAX)]
OneTime = Annotated[
    str | None,
    QueryParameter(
        max_length=40, description="2026-11-21, 2026-11-21T07:30Z, or seconds since 1970"
    ),
]
OneZone = Annotated[
    str,
    QueryParameter(
        max_length=64,
        description="time zone of days and months, and of times without one: Europe/Rome, +05:30",
    ),
]
ActiveAt = Annotated[
    str | None,
    QueryParameter(
        name="active-at", max_length=40, description="allocations valid at this time; or `now`"
    ),
]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        max_length=128,
        description="chosen by you: a repeated request gets the same response and changes nothing",
    ),
]
Comment = Annotated[
    str | None, QueryParameter(max_length=ids.COMMENT_MAX, description="stored in the journal")
]
_MANY_MAX = 200
_MANY = "repeated for several"
ManyNames = Annotated[
    list[Annotated[str, QueryParameter(max_length=ids.NAME_MAX)]] | None,
    QueryParameter(max_items=_MANY_MAX, description=_MANY),
]
ManyIds = Annotated[
    list[Annotated[int, QueryParameter(ge=1, le=ids.ID_MAX)]] | None,
    QueryParameter(max_items=_MANY_MAX, description=_MANY),
]
ManyUids = Annotated[
    list[Annotated[int, QueryParameter(ge=0, le=ids.UID_MAX)]] | None,
    QueryParameter(max_items=_MANY_MAX, description=_MANY),
]
SENT_NAMES = {"key": "Idempotency-Key", "every": "all"}
"""Names that clients send, where handlers use another one."""

Limit = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX, description="maximum number of rows")]
After = Annotated[
    int | None, QueryParameter(ge=0, le=ids.ID_MAX, description="`next` of the previous page")
]
Order = FromQuery[Literal["newest", "oldest"]]


def page(limit: Limit = 100, after: After = None) -> Page:
    """Return a page in ascending order."""
    return Page(limit, after)


def recent(limit: Limit = 100, after: After = None, order: Order = "newest") -> Page:
    """Return a page of events, the newest first by default.

    Args:
        limit: maximum number of rows.
        after: `next` of the previous page, an id; None: the first page.
        order: "newest" or "oldest" first.
    """
    return Page(limit, after, newest_first=order == "newest")


class Period(NamedTuple):
    """A period: since <= t < until. `zone` is the time zone of the request."""

    since: Instant | None
    until: Instant | None
    zone: tzinfo


def period(since: OneTime = None, until: OneTime = None, zone: OneZone = "UTC") -> Period:
    """Parse a period, since <= t < until.

    Args:
        since: text of the start; None: no start.
        until: text of the end; None: no end.
        zone: time zone of days, and of times that name none.

    Raises:
        InvalidInput: a time or the zone is invalid, or the period ends before it begins.
    """
    where = parse_zone(zone)
    start, end = one_time(since, "since", where), one_time(until, "until", where)
    if start is not None and end is not None and end < start:
        raise InvalidInput(
            f"the period ends before it begins: until {iso(end)}, since {iso(start)}",
            field="until",
            remedy="a period is since <= t < until: exchange the two",
        )
    return Period(start, end, where)


class AllocationFilters(NamedTuple):
    """Filters of allocations."""

    resource: str | None
    category: str | None
    active_at: Instant | None


def allocation_filters(
    request: ApiRequest,
    resource: OneName = None,
    category: OneName = None,
    active_at: ActiveAt = None,
) -> AllocationFilters:
    """Parse filters of allocations; raise InvalidInput for an invalid time.

    Args:
        request: the request, whose bank tells the current time.
        resource: resource of the allocation; None: any.
        category: category of the allocation; None: any.
        active_at: text of a time in its period, or `now`; None: any.
    """
    return AllocationFilters(resource, category, instant(request, active_at))


def instant(request: ApiRequest, active_at: str | None) -> Instant | None:
    """Parse a time or `now`; raise InvalidInput for an invalid one."""
    return request.services.clock.now() if active_at == "now" else one_time(active_at, "active-at")


ProjectIds = frozenset[int] | None


def _named_projects(*, only_visible: bool) -> Callable[..., Awaitable[ProjectIds]]:
    """Return the dependency that finds the named projects.

    Args:
        only_visible: find only projects that the user may see. False for lists with rows of other
            projects, such as a child's on its parent's credit. Their queries have to apply the
            user's visibility themselves: then a project of which the user sees no row looks as if
            it did not exist.
    """

    async def named_projects(
        request: ApiRequest,
        project: OneId = None,
        gid: OneUid = None,
        gname: OneName = None,
        account: OneName = None,
    ) -> frozenset[int] | None:
        """Return the named projects; None if none is named. A name without a project selects
        nothing.
        """
        visibility = request.identity.visibility if only_visible else ALL
        if project is None and gid is None and gname is None:
            if account is None:
                return None
            # No thread is needed for an account alone, as commands send it: it is mostly cached.
            cache = request.services.project_cache
            if cache.has_fresh((account,)) and (known := cache.cached(account)) is not None:
                return frozenset({known.id} if visibility.can_see(known.id) else ())
        query = ProjectQuery(
            visibility=visibility,
            ids=None if project is None else frozenset({project}),
            gid=gid,
            gname=gname,
            account=account,
        )
        rows = await sync_to_thread(request.services.projects.find, query, Page(1))
        return frozenset(project.id for project in rows)

    return named_projects


_projects_of_runs = _named_projects(only_visible=False)


async def _projects_of_accounts(
    request: ApiRequest,
    project: OneId = None,
    gid: OneUid = None,
    gname: OneName = None,
    account: ManyNames = None,
) -> ProjectIds:
    """Return the named projects, of several accounts together; None if none is named."""
    if not account:
        return await _projects_of_runs(request, project, gid, gname)
    named = [await _projects_of_runs(request, project, gid, gname, one) for one in account]
    return frozenset().union(*(projects or () for projects in named))


def one_time(text: str | None, field: str, zone: tzinfo = UTC) -> Instant | None:
    """Parse a time; None stays None. Raise InvalidInput for an invalid one.

    Args:
        text: the time as it was sent.
        field: name of the parameter, for the error.
        zone: time zone of a time that names none.
    """
    return None if text is None else parse_instant(text, zone=zone, field=field)


def check_key(key: str | None) -> str | None:
    """Check an idempotency key; raise InvalidInput for an invalid one."""
    return None if key is None else ids.key(key, field="Idempotency-Key")


def job_filters(
    request: ApiRequest,
    projects: NamedDependency[ProjectIds],
    allocations: NamedDependency[AllocationFilters],
    period: NamedDependency[Period],
    allocation: OneId = None,
    owner_uid: OneUid = None,
    cluster: OneName = None,
    job_id: JobId = None,
) -> JobRowQuery:
    """Return the filters of runs and of refusals, with the visibility of the user.

    Args:
        projects: the named projects; None if none is named.
        allocations: filters of the allocation that paid or refused.
        period: the period of the runs or refusals, as their queries select by it.
        allocation: number of the allocation that paid or refused; None: any.
        owner_uid: user of the job; None: all that are visible.
        cluster: name of the cluster; None: any.
        job_id: Slurm's job id, which several runs may have; None: any.
    """
    return JobRowQuery(
        visibility=request.identity.job_visibility,
        projects=projects,
        **allocations._asdict(),
        allocation=allocation,
        owner=owner_uid,
        cluster=cluster,
        job_id=job_id,
        since=period.since,
        until=period.until,
    )


AllocationsChosen = NamedDependency[AllocationFilters]
OnePage = NamedDependency[Page]
OnePeriod = NamedDependency[Period]
JobsChosen = NamedDependency[JobRowQuery]
Projects = NamedDependency[ProjectIds]

PAGE = Provide(page, sync_to_thread=False)
RECENT = Provide(recent, sync_to_thread=False)
PERIOD = Provide(period, sync_to_thread=False)
PROJECTS = Provide(_named_projects(only_visible=True))
PROJECTS_OF_RUNS = Provide(_projects_of_runs)
PROJECTS_OF_ACCOUNTS = Provide(_projects_of_accounts)
ALLOCATIONS = Provide(allocation_filters, sync_to_thread=False)
JOBS = {
    "page": RECENT,
    "period": PERIOD,
    "projects": PROJECTS_OF_RUNS,
    "allocations": ALLOCATIONS,
    "chosen": Provide(job_filters, sync_to_thread=False),
}
