"""Rows of usage and their totals: whatever is shown adds up in its unit."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.query import GroupPage, Usage
from fairbank.core.usage_groups import UsageBy
from fairbank.report.columns import DisplayFormat
from fairbank.report.usage import hours, usage_table
from fairbank.rest.schemas.usage import usage_row
from fairbank.store.usage import page_of_groups

DAYS = (20_758, 20_759, 20_788, 20_789)  # 1, 2 and 30 November, and 1 December 2026
KEYS = [*product(DAYS, ("cpu", "gpu"), ("anvil+bell", "darwin"))]
SUMS = [name for name in Usage.__struct_fields__ if name not in ("group", "resource", "clusters")]
SUMS.remove("early_exit")
usages = st.lists(
    st.builds(
        lambda key, sums: Usage(*key, *sums),
        st.sampled_from(KEYS),
        st.tuples(*(st.integers(0, 10**6) for _ in SUMS)),
    ),
    unique_by=lambda usage: usage.key,
    max_size=12,
)


def totals_of(groups: list[Usage]) -> list[Usage]:
    """Return the sum of each unit."""
    units = sorted({usage.key[1:] for usage in groups})
    return [
        Usage(
            resource,
            resource,
            clusters,
            *(
                sum(getattr(usage, name) for usage in groups if usage.key[1:] == unit)
                for name in SUMS
            ),
        )
        for unit in units
        for resource, clusters in [unit]
    ]


def as_sent(usage: Usage) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(usage_row(usage, usage.group))
    return row


@given(usages, st.sampled_from([UsageBy.USER, UsageBy.DAY]), st.integers(1, 4))
def test_rows_and_percentages_of_each_unit_add_up(
    groups: list[Usage], by: UsageBy, limit: int
) -> None:
    """As the bank sends them: the largest groups, or the latest days, and what is left over."""
    wholes = totals_of(groups)
    largest = page_of_groups(groups, by, GroupPage(limit, largest=True))
    others = [rest for whole in wholes if (rest := whole.others(largest))]
    table = usage_table(
        [as_sent(usage) for usage in (*largest, *others)],
        by.value,
        {},
        [as_sent(whole) for whole in wholes],
    )
    assert len(table.totals) == len(wholes)
    for total in table.totals:
        shown = [row for row in table.rows if row["resource_name"] == total["resource_name"]]
        named = [row for row in shown if row["group"] is not None]
        of_unit = [
            usage for usage in groups if usage.key[1:] == (total["resource"], total["clusters"])
        ]
        assert len(named) == min(limit, len(of_unit))
        assert shown[: len(named)] == named  # the others come last
        # WASTED is not shown of groups whose processor time is not known.
        names = (*("charged", "runs", "elapsed", "core_seconds"), *("cpu_given", "failed_early"))
        for name in names:
            assert sum(row[name] for row in shown) == total[name], name
        assert total["charged"] == sum(usage.charged for usage in of_unit)
        assert sum(row["share_permille"] for row in shown) == (1000 if total["charged"] else 0)
        if by.is_time:
            assert [row["group"] for row in named] == sorted(row["group"] for row in named)


def test_hours_are_rounded_as_amounts_and_give_programs_the_seconds() -> None:
    row, show = {"core_seconds": 59 * 60}, hours("core_seconds")
    assert show(row, DisplayFormat()) == "0.98"
    assert show(row, DisplayFormat(units="k", exact=True)) == "0.9833"
    assert show(row, DisplayFormat(exact=True, decimals=1)) == "1.0"
