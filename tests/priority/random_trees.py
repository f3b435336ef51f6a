"""Random trees of associations."""

from __future__ import annotations

from hypothesis import strategies as st

from fairbank.core.slurm_numbers import ON_PARENT, SHARES_MAX
from fairbank.priority.fairshare.tree import ShareAssociation
from tests.priority.tree_text import TreeWithUsage, tree_with_usage

few = st.integers(0, 4)
shares = st.one_of(few, few, st.just(ON_PARENT), st.integers(0, 300))
used = st.one_of(st.just(0), few.map(lambda count: 10 * count), st.integers(0, 10**12))
wild_shares = st.one_of(st.sampled_from([0, 1, ON_PARENT, SHARES_MAX // 8]), shares)
wild_usage = st.one_of(st.sampled_from([0.0, 5e-324, 1e-300, 1e300, 1.7e308]), st.floats(0, 1e300))


@st.composite
def trees(
    draw: st.DrawFn,
    shares: st.SearchStrategy[int] = shares,
    used: st.SearchStrategy[float] = used,
    most: int = 14,
) -> TreeWithUsage:
    """Draw a small tree with its usage. Numbers are small, so that equal levels are common."""
    rows, own, accounts = [ShareAssociation("root")], [0.0], ["root"]
    for number in range(draw(st.integers(0, most))):
        account = draw(st.sampled_from(accounts))
        if draw(st.booleans()):
            rows.append(ShareAssociation(account, f"u{number}", shares=draw(shares)))
            own.append(draw(used))
        else:
            rows.append(ShareAssociation(f"a{number}", parent=account, shares=draw(shares)))
            own.append(0.0)
            accounts.append(f"a{number}")
    return tree_with_usage(rows, own)
