"""What moving credit would come to, before anybody does it: the dry run of the routes of the same paths."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from fairbank.bank.wish import Deposit, Transfer, Withdraw
from fairbank.rest.answering import done_of
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import Key, Number, checked_key
from fairbank.rest.bodies.answers import Listing, PlannedEntry
from fairbank.rest.routes.undoing import Comment
from fairbank.rest.verbs import REFUSING, reads
from fairbank.rest.views import listing, planned_entry
from fairbank.service.allocations import Movement
from fairbank.values import ids
from fairbank.values.units import AMOUNT_MAX, SuMinutes

Amount = Annotated[int, QueryParameter(ge=1, le=AMOUNT_MAX, description="SU-minutes")]
Target = Annotated[int, QueryParameter(ge=1, le=ids.ID_MAX, description="the allocation that takes")]


@reads("/alloc/{allocation:int}/deposit", responses=REFUSING)
def foretell_deposit(request: Asking, allocation: Number, amount: Amount, comment: Comment, key: Key = None) -> Listing[PlannedEntry]:
    """The entry that this deposit would write now, or what it would be refused for; nothing is changed."""
    wish = Deposit(allocation=allocation, amount=SuMinutes(amount), comment=ids.reason(comment), key=checked_key(key))
    return _foretold(request, wish)


@reads("/alloc/{allocation:int}/withdraw", responses=REFUSING)
def foretell_withdrawal(request: Asking, allocation: Number, amount: Amount, comment: Comment, key: Key = None) -> Listing[PlannedEntry]:
    """The entry that this withdrawal would write now, or what it would be refused for; nothing is changed."""
    wish = Withdraw(allocation=allocation, amount=SuMinutes(amount), comment=ids.reason(comment), key=checked_key(key))
    return _foretold(request, wish)


@reads("/alloc/{allocation:int}/transfer", responses=REFUSING)
def foretell_transfer(
    request: Asking, allocation: Number, to: Target, amount: Amount, comment: Comment, key: Key = None
) -> Listing[PlannedEntry]:
    """The two entries that this transfer would write now, or what it would be refused for; nothing is changed."""
    wish = Transfer(source=allocation, target=to, amount=SuMinutes(amount), comment=ids.reason(comment), key=checked_key(key))
    return _foretold(request, wish)


def _foretold(request: Asking, wish: Movement) -> Listing[PlannedEntry]:
    """None where it was done before under the same key. Raises SaidNo."""
    outcome, entries = request.house.allocations.foretell(request.asker, wish)
    done_of(outcome)
    return listing("planned-entry", request.house.clock, [planned_entry(each, None, None) for each in entries])


ROUTES = (foretell_deposit, foretell_withdrawal, foretell_transfer)
