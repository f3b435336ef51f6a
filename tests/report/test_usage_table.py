"""Rows of usage and their totals: whatever is shown adds up in its unit."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairbank.report.usage import SUMS, usage_table

figures = st.integers(0, 10**6)
usage_rows = st.lists(
    st.fixed_dictionaries(
        {
            "group": st.sampled_from(["2026-11-01", "2026-11-02", "2026-11-30", "2026-12-01"]),
            "resource": st.sampled_from(["cpu", "gpu"]),
            "clusters": st.sampled_from(["anvil+bell", "darwin"]),
            "early_exit_code": st.none(),
            **dict.fromkeys(SUMS, figures),
            "runs": st.integers(0, 9),
        }
    ),
    max_size=12,
)


@given(usage_rows, st.sampled_from(["user", "day"]), st.integers(0, 4))
def test_rows_and_percentages_of_each_unit_add_up(
    rows: list[dict[str, Any]], by: str, limit: int
) -> None:
    table = usage_table(iter(rows), by, {}, limit, iter(rows))
    assert len(table.totals) == len({(row["resource"], row["clusters"]) for row in rows})
    for total in table.totals:
        shown = [row for row in table.rows if row["unit"] == total["unit"]]
        of_unit = [
            row
            for row in rows
            if (row["resource"], row["clusters"]) == (total["resource"], total["clusters"])
        ]
        # WASTED is not shown of groups whose processor time is not known.
        for name in set(SUMS) - {"wasted"}:
            assert sum(row[name] for row in shown) == sum(row[name] for row in of_unit), name
        assert total["charged"] == sum(row["charged"] for row in of_unit)
        assert sum(row["share_permille"] for row in shown) == (1000 if total["charged"] else 0)
        assert len([row for row in shown if row["group"] is not None]) <= (limit or len(of_unit))
