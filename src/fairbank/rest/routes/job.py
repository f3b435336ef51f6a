"""Jobs: reports of clusters, one or a thousand in a request; runs and prices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Literal, TypeVar

import msgspec
from litestar import Response, post
from litestar.concurrency import sync_to_thread
from litestar.params import JSONBody, QueryParameter

from fairbank.bank.query import RunQuery
from fairbank.bank.refusals import CREDIT_REASONS, NOTHING_KNOWN, Refusal, RemedyFacts
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Done, Outcome
from fairbank.bank.rules.short_term import RequestedPlace
from fairbank.bank.run import RunRecord, RunState
from fairbank.cluster.allocated_tres import Memory, MemoryUnit
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import only_cluster
from fairbank.cluster.run_report import AnyReport, PredebitReport, RunReport
from fairbank.core import ids
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.core.slurm_numbers import parse_memory
from fairbank.core.time import LIMIT_MAX_SECONDS, parse_duration
from fairbank.core.tres import Counts, parse_counts, parse_job_tres
from fairbank.core.units import AMOUNT_MAX, SuMinutes, show_minutes
from fairbank.rest.dry_run import LISTS_ENTRIES
from fairbank.rest.json_body import read_json
from fairbank.rest.parameters import JOBS, JobsChosen, Key, Number, OneName, OnePage, check_key
from fairbank.rest.problems import RefusalError, fields_of_body, problem_of_refusal
from fairbank.rest.request import ApiRequest
from fairbank.rest.responses import created_response
from fairbank.rest.routes.failure import remedies_for
from fairbank.rest.routing import GRANTED_BEFORE, read_route, write_route
from fairbank.rest.schemas.answers import Granted, ItemResponse, ListResponse, ReportAnswer
from fairbank.rest.schemas.envelope import (
    granted_answer,
    item_response,
    list_response,
    page_response,
    set_texts,
)
from fairbank.rest.schemas.job import JobQuote, JobRow, Status, job_quote, job_row
from fairbank.rest.schemas.requests import DescribedJob, NewRefund, ReportBatch

InOutcome = Annotated[
    Literal["completed", "failed"] | None,
    QueryParameter(
        name="outcome", description="failed: runs that ran and did not end as COMPLETED"
    ),
]
InState = Annotated[
    Literal["held", "charged", "released", "lapsed"] | None, QueryParameter(name="state")
]

InStatus = Annotated[
    Status | None,
    QueryParameter(name="status", description="HADM's word: executing has a hold, completed none"),
]

HELP_SECONDS = 2.0

Measured = Annotated[
    bool, QueryParameter(description="true: measured use instead, such as that of storage: no jobs")
]

T = TypeVar("T")

# Reports.


@write_route(
    post,
    "/job",
    opt={"scope": "report", **LISTS_ENTRIES},
    responses=GRANTED_BEFORE,
    sync_to_thread=None,
)
async def report_run(
    request: ApiRequest, data: JSONBody[AnyReport]
) -> Response[ItemResponse[Granted]]:
    """Report that a run is about to start, that its time limit changed, or that it ended.

    An idempotency key is part of the report, as `key`; the header `Idempotency-Key` is refused.
    `elapsed` is billed. It may exceed end - start by up to 3600 s, because clocks can be corrected
    during a run.

    HADM's fields of a pre-debit are accepted too: `job_id`, `owner_uid`, `amount`, `resource` and
    `project`, the account and not a number, without `do`; and with `status` `completed`, those of
    its end.
    """
    _refuse_key_header(request, 'send it in the body, as "key"')
    names: Mapping[str | None, str] = {}
    try:
        if isinstance(data, PredebitReport):
            names = {"account": "project"}  # as HADM calls it
            of_predebit = request.services.reports.of_predebit
            data = await sync_to_thread(of_predebit, request.identity, data)
        outcome = await _apply(request, data)
    except FairbankError as error:
        error.field = names.get(error.field, error.field)
        raise
    if isinstance(outcome, Refusal):
        raise RefusalError(outcome, await _help(request, outcome), names)
    return created_response(outcome, request.context)


@write_route(post, "/job/bulk", opt={"scope": "report"}, status_code=200, sync_to_thread=None)
async def report_runs(
    request: ApiRequest, data: JSONBody[ReportBatch]
) -> ListResponse[ReportAnswer]:
    """Apply many reports in order in one transaction; return a result for each, in order.

    `GET /failure/{failure}` names other projects of the owner that could pay for a refused job.
    """
    _refuse_key_header(request, 'send one with each report, as "key"')
    prepared = await request.thread_pools.reports.run(_prepare, request, data)
    requests = [item for item in prepared if isinstance(item, SubmittedRequest)]
    outcomes = iter(await request.write_queue.apply(requests))
    results = [next(outcomes) if isinstance(item, SubmittedRequest) else item for item in prepared]
    refusals = [result for result in results if isinstance(result, Refusal)]
    facts = iter(await _help_for_batch(request, refusals))
    rows = [
        _report_answer(result, next(facts) if isinstance(result, Refusal) else NOTHING_KNOWN)
        for result in results
    ]
    return list_response(ReportAnswer, request.context, rows)


def _refuse_key_header(request: ApiRequest, remedy: str) -> None:
    """Refuse the header Idempotency-Key: it would be ignored, and the client would rely on it."""
    if any(name == b"idempotency-key" for name, _ in request.scope["headers"]):
        raise InvalidInput(
            "a report of a run takes no Idempotency-Key header: its key is a part of it",
            field="Idempotency-Key",
            remedy=remedy,
        )


async def _apply(request: ApiRequest, report: RunReport) -> Outcome:
    """Apply one report. No thread is needed if all that it names is in the cache, as usually."""
    service = request.services.reports
    if request.dry_run:
        return await sync_to_thread(service.dry_run, request.identity, report)
    if service.can_prepare_now([report]):
        prepared = service.requests(request.identity, [report])[0]
    else:
        prepare = request.thread_pools.reports.run
        prepared = (await prepare(service.prepare, request.identity, [report]))[0]
    if isinstance(prepared, FairbankError):
        raise prepared
    return (await request.write_queue.apply([prepared]))[0]


async def _help(request: ApiRequest, refusal: Refusal) -> RemedyFacts:
    """Return what may help, such as other projects that could pay."""
    runs, identity = request.services.runs, request.identity
    return await _in_time(lambda: runs.remedies_for(identity, refusal), NOTHING_KNOWN)


async def _help_for_batch(request: ApiRequest, refusals: list[Refusal]) -> list[RemedyFacts]:
    """Return facts about the allocations, which need few queries for all. Other projects that could
    pay need one for each refusal, and are left out.
    """
    nothing = [NOTHING_KNOWN] * len(refusals)
    if not any(refusal.reason in CREDIT_REASONS for refusal in refusals):
        return nothing
    runs, identity = request.services.runs, request.identity
    return await _in_time(lambda: runs.facts_about(identity, refusals), nothing)


async def _in_time(look_up: Callable[[], T], default: T) -> T:
    """Return a result, or the default if it takes too long: a refusal must not wait for it."""
    try:
        async with asyncio.timeout(HELP_SECONDS):
            return await sync_to_thread(look_up)
    except (TimeoutError, FairbankError):
        return default


def _prepare(request: ApiRequest, data: ReportBatch) -> list[SubmittedRequest | FairbankError]:
    """Convert reports to requests, and invalid ones to their errors, in order."""
    parsed = [_parse(raw) for raw in data.reports]
    valid = [report for report in parsed if not isinstance(report, FairbankError)]
    requests = iter(request.services.reports.prepare(request.identity, valid))
    return [item if isinstance(item, FairbankError) else next(requests) for item in parsed]


def _parse(raw: msgspec.Raw) -> RunReport | FairbankError:
    try:
        report: RunReport = read_json(raw, RunReport)
        return report
    except FairbankError as error:
        return error


_REPORT_FIELDS = fields_of_body(RunReport)


def _report_answer(result: Outcome | FairbankError, known: RemedyFacts) -> ReportAnswer:
    match result:
        case Done():
            granted = granted_answer(result)
            set_texts(granted)
            return ReportAnswer(status=200 if result.again else 201, granted=granted)
        case Refusal():
            problem = problem_of_refusal(result, known, fields=_REPORT_FIELDS)
            return ReportAnswer(
                status=problem.status,
                detail=problem.detail,
                field=problem.field,
                remedy=problem.remedy,
                refusal=problem.refusal,
            )
        case FairbankError():
            return ReportAnswer(
                status=result.status,
                detail=result.message,
                field=result.field,
                remedy=result.remedy,
            )


# Lists.


@read_route("/job", dependencies=JOBS)
def list_jobs(
    request: ApiRequest,
    page: OnePage,
    chosen: JobsChosen,
    in_state: InState = None,
    status: InStatus = None,
    outcome: InOutcome = None,
    partition: OneName = None,
    measured: Measured = False,
) -> ListResponse[JobRow]:
    """List runs of the user, of the user's projects, and those that allocations of these pay for.

    `project`, `gid`, `gname` and `account` select the project that a run was for, also if another
    one paid: runs of a child project are not among those of its parent. `allocation` selects the
    one that pays, of the project or of a parent that shares it; `resource`, `category` and
    `active-at` select by that allocation. `since` and `until` select by the start of the run.

    The order is that in which the bank entered the runs, the last first: of runs with a hold, that
    of their starts. An import enters its runs by their starts, after all that are there.

    Measured use, as that of storage, is charged as runs without a job: it is listed only with
    `measured=true`. Its `job_id` is the number of the project.
    """
    query = RunQuery(
        **msgspec.structs.asdict(chosen),
        state=None if in_state is None else RunState(in_state),
        closed=None if status is None else status == "completed",
        failed=None if outcome is None else outcome == "failed",
        measured=measured,
        partition=partition,
    )
    runs = request.services.runs.find(query, page.and_one)
    row_of = partial(_row, request, request.services.runs.resources(runs))
    return page_response(JobRow, request.context, page.limit, runs, row_of)


@read_route("/job/{job:int}")
def show_job(request: ApiRequest, job: Number) -> ItemResponse[JobRow]:
    """Return one run. `job` is the bank's number: a job id of Slurm may have several runs."""
    run = request.services.runs.get(request.identity, job)
    resources = request.services.runs.resources([run])
    return item_response(request.context, _row(request, resources, run))


def _row(request: ApiRequest, resources: Mapping[int, str], run: RunRecord) -> JobRow:
    account = request.services.project_cache.by_id(run.reported.project).account
    return job_row(run, account, resources[run.allocation])


@write_route(post, "/job/{job:int}/refund", responses=GRANTED_BEFORE)
def refund_job(
    request: ApiRequest, job: Number, data: JSONBody[NewRefund], key: Key = None
) -> Response[ItemResponse[Granted]]:
    """Refund a part or all of the charge of a run. Without an Idempotency-Key, a repeated request
    is another refund.
    """
    amount = None if data.amount is None else SuMinutes(data.amount)
    outcome = request.services.runs.refund(
        request.identity, job, amount, ids.reason(data.comment), check_key(key)
    )
    return created_response(outcome, request.context)


@write_route(post, "/quote", status_code=200, opt={"scope": "read"})
def quote_job(request: ApiRequest, data: JSONBody[DescribedJob]) -> ItemResponse[JobQuote]:
    """Return the price of a job line by line in each of its partitions, and whether the project
    could pay it now; if not, the reason, message and remedies of the refusal. Nothing is stored.

    Other projects of its owner that could pay are named to the owner and to staff.
    """
    account, service = ids.name(data.account, field="account"), request.services.quotes
    counts = parse_job_tres(data.tres)
    job = JobRequest(
        cluster=(
            only_cluster(request.services.clusters)
            if data.cluster is None
            else ids.cluster(data.cluster)
        ),
        partition="",
        counts=counts,
        limit_seconds=_limit_seconds(data.time_limit),
        qos=None if data.qos is None else ids.name(data.qos, field="qos"),
        exclusive=data.exclusive,
        memory=requested_memory(data, counts),
        node_requests={
            option: parse_counts(text, field="node_requests")
            for option, text in data.node_requests.items()
        },
        max_nodes=data.max_nodes,
    )
    place = RequestedPlace(data.partition, data.reservation, data.waiting)
    quoted = service.quote(request.identity, account, job, place, data.tasks, data.owner_uid)
    dearest = max(quote.total for quote in quoted.partitions)
    if dearest > AMOUNT_MAX:
        raise InvalidInput(
            f"this job costs {show_minutes(dearest)}, more than the bank can count",
            field="tres",
            remedy=f"at most {show_minutes(AMOUNT_MAX)}",
        )
    facts = NOTHING_KNOWN if quoted.refusal is None else remedies_for(request, quoted.refusal)
    return item_response(request.context, job_quote(quoted, facts, account, job.cluster))


def requested_memory(data: DescribedJob, counts: Counts) -> Memory | None:
    """Return the memory that is requested for each node, CPU or GPU; None if none is.

    Raises InvalidInput if it is requested twice.
    """
    requested = [
        (field, text, unit)
        for field, text, unit in (
            ("mem", data.mem, MemoryUnit.NODE),
            ("mem_per_cpu", data.mem_per_cpu, MemoryUnit.CPU),
            ("mem_per_gpu", data.mem_per_gpu, MemoryUnit.GPU),
        )
        if text is not None
    ]
    if len(requested) + ("mem" in counts) > 1:
        raise InvalidInput(
            "the memory is requested twice",
            field=requested[-1][0],
            remedy="give one of mem in tres, mem, mem_per_cpu and mem_per_gpu",
        )
    return next((Memory(parse_memory(text, field=f), unit) for f, text, unit in requested), None)


def _limit_seconds(limit: int | str) -> int:
    seconds = limit if isinstance(limit, int) else parse_duration(limit, field="time_limit")
    if seconds > LIMIT_MAX_SECONDS:
        raise InvalidInput(
            f"{seconds} s is out of range",
            field="time_limit",
            remedy=f"at most {LIMIT_MAX_SECONDS} s",
        )
    return seconds
