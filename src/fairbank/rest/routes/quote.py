"""Prices of jobs before they are submitted."""

from __future__ import annotations

from litestar import post
from litestar.params import JSONBody

from fairbank.cluster.job import JobRequest
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.time import LIMIT_MAX_SECONDS, parse_duration
from fairbank.core.tres import parse_job_tres
from fairbank.core.units import AMOUNT_MAX
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import write_route
from fairbank.rest.schemas.answers import ItemResponse
from fairbank.rest.schemas.envelope import item_response
from fairbank.rest.schemas.quote import QuoteCard, quote_card
from fairbank.rest.schemas.requests import DescribedJob


@write_route(post, "/quote", status_code=200, opt={"scope": "read"})
def quote_job(request: ApiRequest, data: JSONBody[DescribedJob]) -> ItemResponse[QuoteCard]:
    """Return the price of a job line by line, and whether the project could pay it now. Nothing is
    stored.
    """
    account, service = ids.name(data.account, field="account"), request.services.quotes
    job = JobRequest(
        cluster=(
            service.only_cluster()
            if data.cluster is None
            else ids.name(data.cluster, field="cluster")
        ),
        partition=ids.name(data.partition, field="partition"),
        counts=parse_job_tres(data.tres),
        limit_seconds=_limit_seconds(data.time_limit),
        qos=None if data.qos is None else ids.name(data.qos, field="qos"),
    )
    quote = service.quote(request.identity, account, job)
    if quote.bill.amount > AMOUNT_MAX:
        raise InvalidInput(
            f"this job costs {quote.bill.amount} SU-minutes, more than the bank can count",
            field="tres",
            remedy=f"at most {AMOUNT_MAX} SU-minutes",
        )
    card = quote_card(quote, account, job.cluster)
    return item_response("quote", request.services.clock, card)


def _limit_seconds(limit: int | str) -> int:
    seconds = limit if isinstance(limit, int) else parse_duration(limit, field="time_limit")
    if seconds > LIMIT_MAX_SECONDS:
        raise InvalidInput(
            f"{seconds} s is out of range",
            field="time_limit",
            remedy=f"at most {LIMIT_MAX_SECONDS} s",
        )
    return seconds


ROUTES = (quote_job,)
