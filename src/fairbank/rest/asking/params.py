"""The query parameters that several routes share, as values."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, HeaderParameter, PathParameter, QueryParameter

from fairbank.bank.query import ALL, PAGE_MAX, Page, ProjectQuery, Sight
from fairbank.core import ids
from fairbank.core.errors import Malformed
from fairbank.core.time import Instant, iso, parse_instant
from fairbank.rest.asking import Asking

Number = Annotated[int, PathParameter(ge=1, le=ids.ID_MAX)]
UidNumber = Annotated[int, PathParameter(ge=0, le=ids.UID_MAX)]
OneId = Annotated[int | None, QueryParameter(ge=1, le=ids.ID_MAX)]
OneUid = Annotated[int | None, QueryParameter(ge=0, le=ids.UID_MAX)]
JobId = Annotated[int | None, QueryParameter(ge=1, le=ids.JOB_ID_MAX)]
OneName = Annotated[str | None, QueryParameter(max_length=64)]
OneTime = Annotated[
    str | None,
    QueryParameter(
        max_length=40, description="2026-11-21, 2026-11-21T07:30Z, or seconds since 1970"
    ),
]
ActiveAt = Annotated[
    str | None,
    QueryParameter(
        name="active-at",
        max_length=40,
        description="of allocations whose period holds this instant, or now",
    ),
]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        max_length=128,
        description="yours: the same again gets the same answer and changes nothing more",
    ),
]
AS_SENT = {"key": "Idempotency-Key", "every": "all"}
"""What clients send under another name than the one that handlers give it."""

Limit = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX, description="rows at most")]
After = Annotated[
    int | None, QueryParameter(ge=0, le=ids.ID_MAX, description="`next` of the page before")
]
Order = FromQuery[Literal["newest", "oldest"]]


def page(limit: Limit = 100, after: After = None) -> Page:
    """A page in rising order."""
    return Page(limit, after)


def recent(limit: Limit = 100, after: After = None, order: Order = "newest") -> Page:
    """A page of what happened, the newest first unless asked otherwise."""
    return Page(limit, after, newest_first=order == "newest")


class Period(NamedTuple):
    """since <= t < until."""

    since: Instant | None
    until: Instant | None


def period(since: OneTime = None, until: OneTime = None) -> Period:
    """Raises Malformed for a time that cannot be read, and for a period that ends before it begins."""
    read = Period(one_time(since, "since"), one_time(until, "until"))
    if read.since is not None and read.until is not None and read.until < read.since:
        raise Malformed(
            f"the period ends before it begins: until {iso(read.until)}, since {iso(read.since)}",
            field="until",
            remedy="a period goes from since up to, without, until: exchange the two",
        )
    return read


class AllocationFilters(NamedTuple):
    """What the allocations concerned must be."""

    resource: str | None
    category: str | None
    active_at: Instant | None


def allocation_filters(
    request: Asking, resource: OneName = None, category: OneName = None, active_at: ActiveAt = None
) -> AllocationFilters:
    """Raises Malformed for a time that cannot be read."""
    return AllocationFilters(resource, category, instant(request, active_at))


def instant(request: Asking, active_at: str | None) -> Instant | None:
    """Raises Malformed."""
    return request.services.clock.now() if active_at == "now" else one_time(active_at, "active-at")


async def projects(
    request: Asking,
    project: OneId = None,
    gid: OneUid = None,
    gname: OneName = None,
    account: OneName = None,
) -> frozenset[int] | None:
    """The projects that are named and may be seen; None when none is named. What fits nothing selects nothing."""
    return await _named(request, request.asker.sight, project, gid, gname, account)


async def run_for(
    request: Asking,
    project: OneId = None,
    gid: OneUid = None,
    gname: OneName = None,
    account: OneName = None,
) -> frozenset[int] | None:
    """The projects that are named, for lists of which the asker sees rows of foreign projects, too: a child's, on its parent's credit.

    Only for queries that carry the asker's sight themselves: a project of which the asker sees no row is then as one that is not there.
    """
    return await _named(request, ALL, project, gid, gname, account)


async def _named(
    request: Asking,
    sight: Sight,
    project: int | None,
    gid: int | None,
    gname: str | None,
    account: str | None,
) -> frozenset[int] | None:
    """In a worker thread only where the books must be asked: an account by itself, as commands name it, is mostly in memory."""
    if project is None and gid is None and gname is None:
        if account is None:
            return None
        directory = request.services.directory
        if directory.has_fresh((account,)) and (known := directory.cached(account)) is not None:
            return frozenset({known.id} if sight.sees(known.id) else ())
    query = ProjectQuery(
        sight=sight,
        ids=None if project is None else frozenset({project}),
        gid=gid,
        gname=gname,
        account=account,
    )
    found = await sync_to_thread(request.services.projects.find, query, Page(1))
    return frozenset(each.id for each in found)


def one_time(text: str | None, field: str) -> Instant | None:
    """Raises Malformed, naming `field`."""
    return None if text is None else parse_instant(text, field=field)


def checked_key(key: str | None) -> str | None:
    """Raises Malformed."""
    return None if key is None else ids.key(key, field="Idempotency-Key")


class JobFilters(NamedTuple):
    """What both lists of jobs are asked for, that of runs and that of refusals; named as in RunQuery and RefusalQuery."""

    sight: Sight
    projects: frozenset[int] | None
    resource: str | None
    category: str | None
    active_at: Instant | None
    allocation: int | None
    owner: int | None
    cluster: str | None
    job_id: int | None
    since: Instant | None
    until: Instant | None


def job_filters(
    request: Asking,
    projects: NamedDependency[frozenset[int] | None],
    concerned: NamedDependency[AllocationFilters],
    period: NamedDependency[Period],
    allocation: OneId = None,
    owner_uid: OneUid = None,
    cluster: OneName = None,
    job_id: JobId = None,
) -> JobFilters:
    """As far as the asker may see."""
    return JobFilters(
        request.asker.sight, projects, *concerned, allocation, owner_uid, cluster, job_id, *period
    )


Concerned = NamedDependency[AllocationFilters]
OnePage = NamedDependency[Page]
OnePeriod = NamedDependency[Period]
JobsAsked = NamedDependency[JobFilters]
Projects = NamedDependency[frozenset[int] | None]

PAGE = Provide(page, sync_to_thread=False)
RECENT = Provide(recent, sync_to_thread=False)
PERIOD = Provide(period, sync_to_thread=False)
PROJECTS = Provide(projects)
RUN_FOR = Provide(run_for)
CONCERNED = Provide(allocation_filters, sync_to_thread=False)
JOBS = {
    "page": RECENT,
    "period": PERIOD,
    "projects": RUN_FOR,
    "concerned": CONCERNED,
    "chosen": Provide(job_filters, sync_to_thread=False),
}
