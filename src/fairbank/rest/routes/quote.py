"""What a job would cost, before it is submitted."""

from __future__ import annotations

from litestar import post
from litestar.params import JSONBody

from fairbank.cluster.job import JobRequest
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.time import LIMIT_MAX_SECONDS, parse_duration
from fairbank.core.tres import parse_job_tres
from fairbank.core.units import AMOUNT_MAX
from fairbank.rest.asking import Asking
from fairbank.rest.bodies.answers import QuoteCard, Single
from fairbank.rest.bodies.requests import DescribedJob
from fairbank.rest.verbs import writes
from fairbank.rest.views import quote_card, single


@writes(post, "/quote", status_code=200, opt={"scope": "read"})
def quote_job(request: Asking, data: JSONBody[DescribedJob]) -> Single[QuoteCard]:
    """The price of a job line by line, and whether it could be paid now. Touches no book."""
    account = ids.name(data.account, field="account")
    described = JobRequest(
        cluster=request.services.quotes.only_cluster()
        if data.cluster is None
        else ids.name(data.cluster, field="cluster"),
        partition=ids.name(data.partition, field="partition"),
        counts=parse_job_tres(data.tres),
        limit_seconds=_seconds(data.time_limit),
        qos=None if data.qos is None else ids.name(data.qos, field="qos"),
    )
    quote = request.services.quotes.quote(request.asker, account, described)
    if quote.bill.amount > AMOUNT_MAX:
        raise InvalidInput(
            "this job costs more than the bank can count",
            field="tres",
            remedy=f"at most {AMOUNT_MAX} SU-minutes",
        )
    return single("quote", request.services.clock, quote_card(quote, account, described.cluster))


def _seconds(limit: int | str) -> int:
    seconds = limit if isinstance(limit, int) else parse_duration(limit, field="time_limit")
    if seconds > LIMIT_MAX_SECONDS:
        raise InvalidInput(
            f"{seconds} s is out of range",
            field="time_limit",
            remedy=f"at most {LIMIT_MAX_SECONDS} s",
        )
    return seconds


ROUTES = (quote_job,)
