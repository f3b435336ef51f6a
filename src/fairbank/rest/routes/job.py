"""Runs: what clusters report of them, one at a time or a thousand, and what the books have of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

import msgspec
from litestar import Response, post
from litestar.concurrency import sync_to_thread
from litestar.params import JSONBody, QueryParameter

from fairbank.bank.ledger import Done, Outcome
from fairbank.bank.query import RunQuery
from fairbank.bank.refusal import NOTHING_KNOWN, Help, Reason, Refusal
from fairbank.bank.run import RunRecord, RunState
from fairbank.bank.wish import Asked
from fairbank.cluster.run_report import RunReport
from fairbank.core import ids
from fairbank.core.errors import Malformed, Trouble
from fairbank.core.units import SuMinutes
from fairbank.rest.answering import Reply, new, reply, response
from fairbank.rest.asking import JUDGED, Asking, Judged
from fairbank.rest.asking.params import JOBS, JobsAsked, Key, Number, OneName, OnePage, checked_key
from fairbank.rest.asking.reading import read_json
from fairbank.rest.asking.reports import report_of
from fairbank.rest.bodies.answers import Granted, JobRow, Listing, ReportAnswer, Single
from fairbank.rest.bodies.requests import AnyReport, NewRefund, Reports
from fairbank.rest.concerning import fields_of_body
from fairbank.rest.problems import SaidNo, problem_of_refusal
from fairbank.rest.statuses import status_of
from fairbank.rest.verbs import AGAIN, reads, writes
from fairbank.rest.views import by_id, cut, granted, job_row, listing, single

InOutcome = Annotated[
    Literal["completed", "failed"] | None,
    QueryParameter(name="outcome", description="failed: those that ended otherwise than COMPLETED"),
]
InState = Annotated[
    Literal["held", "charged", "released", "lapsed"] | None, QueryParameter(name="state")
]

ADVICE_SECONDS = 2.0

T = TypeVar("T")

# --- reports ---


async def answer_report(request: Asking, data: AnyReport) -> Reply:
    """What `report_run` answers. Raises SaidNo, Trouble."""
    _demand_no_key(request, 'send it in the body, as "key"')
    outcome = await _judged(request, data)
    if isinstance(outcome, Refusal):
        raise SaidNo(outcome, await _help(request, outcome))
    return reply(outcome, request.services.clock)


@writes(
    post,
    "/job",
    opt={"scope": "report", "lane": answer_report},
    responses=AGAIN,
    sync_to_thread=None,
)
async def report_run(request: Asking, data: JSONBody[AnyReport]) -> Response[Single[Granted]]:
    """A run is about to start, its time limit changed, or it ended.

    An idempotency key goes into the report, as `key`; an `Idempotency-Key` header is refused.
    `elapsed` is what is billed. Clocks may be set right while a run lasts, so it may be up to 3600 s more than end - start, not beyond.
    """
    return response(await answer_report(request, data))


@writes(
    post, "/job/bulk", opt={"scope": "report", "lane": True}, status_code=200, sync_to_thread=None
)
async def report_runs(request: Asking, data: JSONBody[Reports]) -> Listing[ReportAnswer]:
    """Many reports, judged in order in one transaction; an answer for each, in their order.

    Which other projects of its owner could pay for a refused job is told by `GET /failure/{failure}`.
    """
    _demand_no_key(request, 'send one with each report, as "key"')
    prepared = await request.workers.reports.run(_prepare, request, data)
    outcomes = iter(
        await request.teller.ask([each for each in prepared if isinstance(each, Asked)])
    )
    came = [next(outcomes) if isinstance(each, Asked) else each for each in prepared]
    known = iter(await _helps(request, [each for each in came if isinstance(each, Refusal)]))
    rows = [
        _answer(each, next(known) if isinstance(each, Refusal) else NOTHING_KNOWN) for each in came
    ]
    return listing("report", request.services.clock, rows)


def _demand_no_key(request: Asking, remedy: str) -> None:
    """A report has its key within. One in the head would protect nothing, and who sends it would rely on it. Raises Malformed."""
    if any(name == b"idempotency-key" for name, _ in request.scope["headers"]):
        raise Malformed(
            "a report of a run takes no Idempotency-Key header: its key is a part of it",
            field="Idempotency-Key",
            remedy=remedy,
        )


async def _judged(request: Asking, data: AnyReport) -> Outcome:
    """What the counter says of a report, which the express may have handed in."""
    handed_in: Judged | None = request.scope.get(JUDGED)  # type: ignore[assignment]
    if handed_in is not None:
        return (await handed_in.waiting)[0]
    prepared = (await _prepared(request, [report_of(data)]))[0]
    if isinstance(prepared, Trouble):
        raise prepared
    return (await request.teller.ask([prepared]))[0]


async def _prepared(request: Asking, reports: list[RunReport]) -> list[Asked | Trouble]:
    """At once when no look at the books is needed, which is nearly always; else in a worker thread."""
    service = request.services.reports
    if service.can_prepare_now(reports):
        return service.requests(request.asker, reports)
    return await request.workers.reports.run(service.prepare, request.asker, reports)


async def _help(request: Asking, no: Refusal) -> Help:
    """What may help, such as who else could pay."""
    return await _in_time(lambda: request.services.runs.remedies_for(no), NOTHING_KNOWN)


async def _helps(request: Asking, refused: list[Refusal]) -> list[Help]:
    """The same for a batch, but only what its jobs missed, which is one look for all: who else could pay is another for each."""
    nothing = [NOTHING_KNOWN] * len(refused)
    if not any(no.reason is Reason.NO_ALLOCATION for no in refused):
        return nothing
    return await _in_time(lambda: request.services.runs.nearest_allocations(refused), nothing)


async def _in_time(look: Callable[[], T], otherwise: T) -> T:
    """What a look finds, unless it takes too long or finds no books to look into: a no is not to wait for books or LDAP."""
    try:
        async with asyncio.timeout(ADVICE_SECONDS):
            return await sync_to_thread(look)
    except (TimeoutError, Trouble):
        return otherwise


def _read(raw: msgspec.Raw) -> RunReport | Trouble:
    try:
        return report_of(read_json(raw, AnyReport))
    except Trouble as trouble:
        return trouble


def _prepare(request: Asking, data: Reports) -> list[Asked | Trouble]:
    """The reports that can be read as wishes; the others as what is wrong with them."""
    read = [_read(each) for each in data.reports]
    wishes = iter(
        request.services.reports.prepare(
            request.asker, [each for each in read if not isinstance(each, Trouble)]
        )
    )
    return [each if isinstance(each, Trouble) else next(wishes) for each in read]


_TOLD = fields_of_body(AnyReport)


def _answer(came: Outcome | Trouble, known: Help) -> ReportAnswer:
    match came:
        case Done():
            return ReportAnswer(status=200 if came.again else 201, granted=granted(came))
        case Refusal():
            problem = problem_of_refusal(came, known, there=_TOLD)
            return ReportAnswer(
                status=problem.status,
                detail=problem.detail,
                field=problem.field,
                remedy=problem.remedy,
                refusal=problem.refusal,
            )
        case Trouble():
            return ReportAnswer(
                status=status_of(came), detail=came.message, field=came.field, remedy=came.remedy
            )


# --- reading ---


@reads("/job", dependencies=JOBS)
def list_jobs(
    request: Asking,
    page: OnePage,
    chosen: JobsAsked,
    in_state: InState = None,
    outcome: InOutcome = None,
    partition: OneName = None,
) -> Listing[JobRow]:
    """The runs that the asker may see: the own ones, those that ran for the own projects, and those that allocations of these carry.

    Project, gid, gname and account name the project that they ran for, whoever paid: a child's jobs are not among its parent's.
    Allocation is the one that carries them, of the project or of a parent that shares it; resource, category and active-at are about
    it. Since and until are about their start.
    """
    state = None if in_state is None else RunState(in_state)
    query = RunQuery(
        **chosen._asdict(),
        state=state,
        failed=None if outcome is None else outcome == "failed",
        partition=partition,
    )
    found, following = cut(page.limit, request.services.runs.find(query, page.and_one), by_id)
    return listing(
        "job", request.services.clock, [_row(request, each) for each in found], following
    )


@reads("/job/{job:int}")
def show_job(request: Asking, job: Number) -> Single[JobRow]:
    """One run. The number is the bank's; a scheduler's job id may stand for several runs."""
    return single(
        "job", request.services.clock, _row(request, request.services.runs.get(request.asker, job))
    )


def _row(request: Asking, record: RunRecord) -> JobRow:
    return job_row(record, request.services.directory.by_id(record.project).account)


@writes(post, "/job/{job:int}/refund", responses=AGAIN)
def refund_job(
    request: Asking, job: Number, data: JSONBody[NewRefund], key: Key = None
) -> Response[Single[Granted]]:
    """Give back part or all of what a run was charged. Sent again without an Idempotency-Key, it is one refund more."""
    amount = None if data.amount is None else SuMinutes(data.amount)
    return new(
        request.services.runs.refund(
            request.asker, job, amount, ids.reason(data.comment), checked_key(key)
        ),
        request.services.clock,
    )


ROUTES = (report_run, report_runs, list_jobs, show_job, refund_job)
