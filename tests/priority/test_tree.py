"""Trees from rows: accepted rows, and the messages for rejected ones."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT, SHARES_MAX
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.tree import (
    DEPTH_MAX,
    LEVEL_SHARES_MAX,
    ShareAssociation,
    build_tree,
    sum_usage,
    usage_of,
)
from tests.support.long_doubles import AS_ON_X86_64

ROOT = ShareAssociation("root")
REMEDIES = (
    r"a user's parent is the account|their sum may be 4294967295|a tree may have 1000 levels|"
    r"a whole number from 0 to 2147483646, or 2147483647 for parent|"
    r"give (each account|one of them a parent|the account a row|the root account)|"
    r"leave the partition out|name the (account that|parent of all but the root)"
)


def refused(*rows: ShareAssociation) -> InvalidInput:
    with pytest.raises(InvalidInput) as no:
        build_tree(rows)
    assert re.match(REMEDIES, no.value.remedy or "")
    return no.value


@pytest.mark.parametrize(
    ("rows", "message", "field"),
    [
        ([], "no account is without a parent", "parent"),
        ([ShareAssociation("chem", "dave")], "no account is without a parent", "parent"),
        (
            [ROOT, ShareAssociation("other")],
            "row 2 (account other): row 1 (account root) has no parent either",
            "parent",
        ),
        (
            [ROOT, ShareAssociation("chem", parent="sciences")],
            "row 2 (account chem): there is no account sciences",
            "parent",
        ),
        (
            [ROOT, ShareAssociation("chem", "dave")],
            "row 2 (account chem, user dave): there is no account chem",
            "account",
        ),
        (
            [ROOT, ShareAssociation("", "dave")],
            "row 2 (account , user dave): there is no account",
            "account",
        ),
        (
            [ROOT, ShareAssociation("root", partition="gpu", parent="root")],
            "row 2 (account root, partition gpu): an account is in no partition",
            "partition",
        ),
        (
            [
                ROOT,
                ShareAssociation("chem", parent="root"),
                ShareAssociation("chem", "dave", parent="root"),
            ],
            "row 3 (account chem, user dave): its parent is root",
            "parent",
        ),
        (
            [
                ROOT,
                ShareAssociation("root", "dave", "gpu"),
                ShareAssociation("root", "dave"),
                ShareAssociation("root", "dave", "gpu", shares=3),
            ],
            "row 4 (account root, user dave, partition gpu): row 2 is the same association",
            "account",
        ),
        (
            [
                ROOT,
                ShareAssociation("chem", parent="root"),
                ShareAssociation("chem", parent="chem"),
            ],
            "row 3 (account chem): row 2 is the same association",
            "account",
        ),
        (
            [ROOT, ShareAssociation("root", "dave", shares=-1)],
            "row 2 (account root, user dave): -1 are no shares",
            "shares",
        ),
        (
            [ROOT, ShareAssociation("root", "dave", shares=ON_PARENT + 1)],
            "row 2 (account root, user dave): 2147483648 are no shares",
            "shares",
        ),
        (
            [ROOT, ShareAssociation("root", "dave", shares=10**30)],
            f"row 2 (account root, user dave): {10**30} are no shares",
            "shares",
        ),
        (
            [ROOT, ShareAssociation("root", "dave", shares=math.nan)],  # type: ignore[arg-type]
            "row 2 (account root, user dave): nan are no shares",
            "shares",
        ),
        (
            [ROOT, ShareAssociation("root", "dave", shares=0.5)],  # type: ignore[arg-type]
            "row 2 (account root, user dave): 0.5 are no shares",
            "shares",
        ),
    ],
)
def test_row_without_valid_parent_is_named(
    rows: list[ShareAssociation], message: str, field: str
) -> None:
    no = refused(*rows)
    assert (no.message, no.field) == (message, field)


def test_accounts_in_a_circle_are_shown() -> None:
    rows = [
        ROOT,
        ShareAssociation("below", parent="a"),
        ShareAssociation("a", parent="b"),
        ShareAssociation("b", parent="c"),
        ShareAssociation("c", parent="a"),
    ]
    assert refused(*rows).message == "row 3 (account a): it is above itself: a -> b -> c -> a"
    assert (
        refused(ROOT, ShareAssociation("self", parent="self")).message
        == "row 2 (account self): it is above itself: self -> self"
    )


def test_sum_of_shares_is_limited_as_in_slurm() -> None:
    siblings = [ShareAssociation("root", name, shares=SHARES_MAX) for name in ("one", "two")]
    tree = build_tree(
        [
            ROOT,
            *siblings,
            ShareAssociation("root", "three", shares=LEVEL_SHARES_MAX - 2 * SHARES_MAX),
        ]
    )
    assert tree.shape.shares_below[0] == LEVEL_SHARES_MAX
    no = refused(
        ROOT,
        *siblings,
        ShareAssociation("root", "three", shares=LEVEL_SHARES_MAX - 2 * SHARES_MAX + 1),
    )
    assert (no.message, no.field) == (
        "row 1 (account root): those below it have 4294967296 shares together",
        "shares",
    )


def test_tree_has_maximum_depth() -> None:
    line = [
        ROOT,
        *(
            ShareAssociation(f"a{level}", parent=f"a{level - 1}" if level > 1 else "root")
            for level in range(1, DEPTH_MAX)
        ),
    ]
    tree = build_tree([*line, ShareAssociation(line[-1].account, "deep")])
    assert fair_tree(tree, np.ones(len(tree.rows))).factor[-1] == 1
    rows = [
        *line,
        ShareAssociation("last", parent=line[-1].account),
        ShareAssociation("last", "deep"),
    ]
    assert (
        refused(*rows).message
        == f"row {len(rows)} (account last, user deep): {DEPTH_MAX + 1} levels below the root"
    )


def test_rows_can_be_in_any_order() -> None:
    tree = build_tree(
        [
            ShareAssociation("chem", "dave"),
            ShareAssociation("chem", parent="sciences"),
            ShareAssociation("sciences", parent="root"),
            ROOT,
        ]
    )
    assert tree.parent.tolist() == [1, 2, 3, -1]
    assert (tree.root, tree.is_user.tolist()) == (3, [True, False, False, False])


def test_root_alone_is_a_tree() -> None:
    tree = build_tree([ROOT])
    assert (fair_tree(tree, [5]).rank.tolist(), sum_usage(tree, [5]).tolist()) == ([0], [5])


def test_user_may_have_several_partitions() -> None:
    assert (
        len(
            build_tree(
                [
                    ROOT,
                    ShareAssociation("root", "dave"),
                    ShareAssociation("root", "dave", "gpu"),
                    ShareAssociation("root", "dave", "cpu"),
                ]
            ).rows
        )
        == 4
    )


# --- usage ---

CHEM = build_tree(
    [
        ROOT,
        ShareAssociation("chem", parent="root"),
        ShareAssociation("chem", "dave"),
        ShareAssociation("chem", "erin"),
        ShareAssociation("root", "zoe"),
    ]
)


def test_usage_is_summed_by_real_parents() -> None:
    assert sum_usage(CHEM, [0, 0, 10, 20, 5]).tolist() == [35, 30, 10, 20, 5]
    assert sum_usage(CHEM, [0, 7, 10, 20, 5]).tolist() == [
        42,
        37,
        10,
        20,
        5,
    ]  # 7 by users that are gone


@pytest.mark.skipif(not AS_ON_X86_64, reason="sums are those of another processor's long double")
def test_usage_is_summed_row_by_row() -> None:
    """Sums of long doubles depend on the order: two ones are lost beside 2**64 one by one, but not
    together.
    """
    deep = build_tree(
        [
            ROOT,
            ShareAssociation("root", "first"),
            ShareAssociation("a", parent="root"),
            ShareAssociation("a", "second"),
            ShareAssociation("root", "third"),
        ]
    )
    one, large = np.longdouble(1), np.longdouble(2) ** 64
    assert sum_usage(deep, np.array([0, one, 0, large, one]))[0] == (one + large) + one
    assert (
        sum_usage(deep, np.array([0, one, 0, one, large]))[0]
        == (one + one) + large
        != (one + large) + one
    )


@pytest.mark.parametrize(
    ("used", "expected"), [(math.nan, "nan"), (math.inf, "inf"), (-1.0, "-1.0")]
)
def test_invalid_usage_is_named(used: float, expected: str) -> None:
    with pytest.raises(InvalidInput) as no:
        usage_of(CHEM, [0, 0, 1, used, 0])
    assert (no.value.message, no.value.field) == (
        f"row 4 (account chem, user erin): {expected} is not a usage",
        "usage",
    )


def test_usage_count_must_match_rows() -> None:
    with pytest.raises(InvalidInput, match="usage of 2 rows for a tree of 5"):
        fair_tree(CHEM, [1, 2])
