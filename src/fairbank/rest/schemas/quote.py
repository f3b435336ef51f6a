"""Prices of jobs before they are submitted. Numbers are exact decimals or fractions."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from fairbank.bank.pricing import Quote


class QuoteLine(Struct, frozen=True, kw_only=True):
    """One TRES: count x weight = weighted. `counts` if this line is part of the price."""

    what: str
    count: str
    weight: str
    weighted: str
    counts: bool


class QuoteCard(Struct, frozen=True, kw_only=True):
    """A price and its calculation: amount = billing x factor x seconds / 60, rounded up once.

    `longest_seconds` is the longest time limit that the credit allows. `fits` is also true if a
    bank that only observes lets the job through without credit. `notes` say so, and name what the
    price leaves out.
    """

    account: str
    cluster: str
    resource: str
    lines: list[QuoteLine]
    billing: str
    factor: str
    seconds: int
    amount: int
    allocation: int | None
    available: int
    after: int
    fits: bool
    longest_seconds: int
    notes: list[str]


def quote_card(quote: Quote, account: str, cluster: str) -> QuoteCard:
    """Return a quote with its lines."""
    bill = quote.bill
    return QuoteCard(
        account=account,
        cluster=cluster,
        resource=bill.resource,
        lines=[
            QuoteLine(
                what=line.what,
                count=exact(line.count),
                weight=exact(line.weight),
                weighted=exact(line.weighted),
                counts=line.counts,
            )
            for line in bill.lines
        ],
        billing=exact(bill.billing),
        factor=exact(bill.factor),
        seconds=bill.seconds,
        amount=bill.amount,
        allocation=quote.allocation,
        available=quote.available,
        after=quote.after,
        fits=quote.fits,
        longest_seconds=quote.longest_seconds,
        notes=list(quote.notes),
    )


def exact(number: Fraction) -> str:
    """Format a fraction as a decimal if it is finite, else as `1/3`."""
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return str(number)
    places = max(twos, fives)
    digits = str(abs(number.numerator) * 10**places // number.denominator).zfill(places + 1)
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"
