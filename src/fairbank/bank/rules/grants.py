"""Rules of a grant: the category of its allocation, as the settings have it."""

from __future__ import annotations

from fairbank.bank.allocation import Allocation
from fairbank.bank.policy import GrantCategory, GrantRange
from fairbank.bank.refusals import Detail, Facts, Reason, Refusal
from fairbank.bank.rules.context import RuleContext
from fairbank.core.time import DAY
from fairbank.core.units import MINUTES_IN_SU


def refuse_grant(
    context: RuleContext,
    new: Allocation,
    old: Allocation | None = None,
    *,
    is_transfer: bool = False,
) -> Refusal | None:
    """Return why the category of an allocation refuses a grant; None if it allows it.

    Only what grows is checked, and an undo is not: credit and time that are there may stay, also
    after the settings have changed.

    Args:
        context: the context, with the categories and the user.
        new: the allocation after the grant.
        old: the allocation before it; None for a new one.
        is_transfer: the credit was granted before, to another project.
    """
    categories = context.policy.categories
    if not categories or context.undoes is not None:
        return None
    terms = new.terms
    category = categories.get(terms.category)
    if category is None:
        return None if old is not None else _unknown(new, categories)
    more = old is None or _granted(new) > _granted(old)
    longer = old is None or terms.end - terms.start > old.terms.end - old.terms.start
    if category.resources and terms.resource not in category.resources:
        if more or longer:
            names = ", ".join(sorted(category.resources))
            return _outside(new, Detail.NO_RESOURCE, field="resource", names=names)
        return None
    if (more or longer) and not is_transfer and not _can_grant(context, category):
        names = ", ".join(map(str, sorted(category.granters)))
        return _outside(new, Detail.NO_GRANTER, field="category", names=names)
    days = category.longest_days
    if longer and days is not None and terms.end - terms.start > days * DAY:
        return _outside(new, Detail.TOO_LONG, field="end", days=days)
    limits = category.resources.get(terms.resource, GrantRange())
    return _refuse_amount(new, limits, is_new=old is None) if more else None


def _can_grant(context: RuleContext, category: GrantCategory) -> bool:
    submitted = context.submitted
    uid = submitted.actor if submitted.acting_as is None else submitted.acting_as
    return not category.granters or uid in category.granters


def _refuse_amount(new: Allocation, limits: GrantRange, *, is_new: bool) -> Refusal | None:
    lowest, highest = limits.lowest * MINUTES_IN_SU, (limits.highest or 0) * MINUTES_IN_SU
    if is_new and _granted(new) < lowest:
        return _outside(new, Detail.TOO_LOW, lowest=lowest)
    if limits.highest is not None and _granted(new) > highest:
        return _outside(new, Detail.TOO_HIGH, highest=highest)
    return None


def _granted(allocation: Allocation) -> int:
    return allocation.deposited + allocation.terms.credit_limit


def _unknown(new: Allocation, categories: dict[str, GrantCategory]) -> Refusal:
    names = "; ".join(
        f"{name} ({category.purpose})" if category.purpose else name
        for name, category in sorted(categories.items())
    )
    facts = Facts(category=new.terms.category, names=names)
    return Refusal(
        Reason.UNKNOWN_CATEGORY, Detail.OTHER_CATEGORY, project=new.terms.project, facts=facts
    )


def _outside(new: Allocation, detail: Detail, **facts: object) -> Refusal:
    return Refusal(
        Reason.OUTSIDE_CATEGORY,
        detail,
        requested=_granted(new),
        allocation=new.id or None,
        project=new.terms.project,
        resource=new.terms.resource,
        facts=Facts(category=new.terms.category, **facts),  # type: ignore[typeddict-item]
    )
