"""A quote as the shape that travels: its numbers are exact decimals."""

from __future__ import annotations

from fractions import Fraction

from fairbank.bank.quote import Quote
from fairbank.rest.bodies import answers


def quote_card(quote: Quote, account: str, cluster: str) -> answers.QuoteCard:
    """A quote with its lines; counts and weights as exact decimals."""
    bill = quote.bill
    return answers.QuoteCard(
        account=account,
        cluster=cluster,
        resource=bill.resource,
        lines=[
            answers.QuoteLine(
                what=each.what,
                count=exact(each.count),
                weight=exact(each.weight),
                weighted=exact(each.weighted),
                counts=each.counts,
            )
            for each in bill.lines
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
    """A fraction as a decimal where it ends, else as `1/3`."""
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
