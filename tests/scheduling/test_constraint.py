"""Grammar of constraints, as sbatch accepts it. Source: docs/reference/slurm-rules.md,
"Constraints".
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.constraint import (
    ANY,
    Constraint,
    Expression,
    matching_nodes,
    parse,
)

# Eight nodes: node i has a, b and c where the bits of i say so.
HAVING = {
    name: node_set.of(node for node in range(8) if node >> bit & 1)
    for bit, name in enumerate("abc")
}


def those(expression: Expression | None) -> list[int]:
    return list(
        node_set.each(
            matching_nodes(
                expression, lambda name: HAVING.get(name, node_set.NO_NODES), node_set.all_nodes(8)
            )
        )
    )


def kinds(text: str) -> list[list[int]]:
    return [those(expression) for expression in parse(text).alternatives]


def groups(text: str) -> list[tuple[list[int], int]]:
    result = parse(text)
    return [(those(group.nodes), group.least) for group in result.groups]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("a", [1, 3, 5, 7]),
        ("a&b", [3, 7]),
        ("a,b", [3, 7]),
        ("a|b", [1, 2, 3, 5, 6, 7]),
        ("a|b&c", [5, 6, 7]),
        ("a&b|c", [3, 4, 5, 6, 7]),
        ("a|(b&c)", [1, 3, 5, 6, 7]),
        ("(a|b)&(b|c)", [2, 3, 5, 6, 7]),
        (" a & b ", [3, 7]),
        ("nowhere", []),
        ("", list(range(8))),
    ],
)
def test_every_node_of_the_job_must_satisfy_it(text: str, nodes: list[int]) -> None:
    assert kinds(text) == [nodes]
    assert groups(text) == []


def test_brackets_ask_for_nodes_that_are_all_alike() -> None:
    assert kinds("[a|b|c]") == [[1, 3, 5, 7], [2, 3, 6, 7], [4, 5, 6, 7]]
    assert kinds("[(a&b)|c]") == [[3, 7], [4, 5, 6, 7]]
    assert kinds("a&[b|c]") == kinds("[b|c]&a") == [[3, 7], [5, 7]]


def test_counts_ask_for_some_nodes_of_a_kind() -> None:
    assert parse("a*4").alternatives == (None,)
    assert groups("a*4") == [([1, 3, 5, 7], 4)]
    assert groups("[a*2&b*4]") == [([1, 3, 5, 7], 2), ([2, 3, 6, 7], 4)]
    assert groups("[a*2&b]") == [([1, 3, 5, 7], 2), ([2, 3, 6, 7], 1)]
    assert groups("[(a|b)*1&(c)*2]") == [([1, 2, 3, 5, 6, 7], 1), ([4, 5, 6, 7], 2)]
    assert groups("[(a&b)*2&c*1]") == [([3, 7], 2), ([4, 5, 6, 7], 1)]
    assert groups("(a&b)*2") == [([3, 7], 2)]


def test_no_constraint_is_any_node() -> None:
    assert parse("") is ANY
    assert Constraint((None,), ()) == ANY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a&", "a feature is missing, at place 3 of 'a&'"),
        ("&a", "& stands at the beginning, at place 1 of '&a'"),
        ("a||b", "| stands behind |, at place 3 of 'a||b'"),
        ("a b", "b stands behind a, at place 3 of 'a b'"),
        ("(a", "( is never closed, at place 1 of '(a'"),
        ("a)", ") stands behind a, at place 2 of 'a)'"),
        ("((a))", "( stands behind (, at place 2 of '((a))'"),
        ("(a)b", "b stands behind ), at place 4 of '(a)b'"),
        ("[a|b]c", "c stands behind ], at place 6 of '[a|b]c'"),
        ("[a|b", "[ is never closed, at place 1 of '[a|b'"),
        ("[a|[b]]", "[ stands behind |, at place 4 of '[a|[b]]'"),
        ("[a|b]&[c|d]", "[ stands behind &, at place 7 of '[a|b]&[c|d]'"),
        ("a|[b|c]", "| before [, at place 3 of 'a|[b|c]'"),
        ("[b|c]|a", "| behind ], at place 6 of '[b|c]|a'"),
        ("[a&b|c]", "& and | stand side by side in brackets, at place 1 of '[a&b|c]'"),
        ("a*", "* without a number of nodes behind it, at place 2 of 'a*'"),
        ("a*0", "* without a number of nodes behind it, at place 2 of 'a*0'"),
        ("a*-1", "* without a number of nodes behind it, at place 2 of 'a*-1'"),
        ("a*b", "* without a number of nodes behind it, at place 2 of 'a*b'"),
        ("(a*2&b)", "* stands behind a, at place 3 of '(a*2&b)'"),
        ("a&b*2", "* stands behind b, at place 4 of 'a&b*2'"),
        ("a*2&b", "a count beside others, at place 4 of 'a*2&b'"),
        ("[a*2|b]", "a count among alternatives, at place 1 of '[a*2|b]'"),
        ("[]", "] stands behind [, at place 2 of '[]'"),
    ],
)
def test_unreadable_text_is_reported_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as no:
        parse(text, "constraint")
    assert no.value.message == message
    assert no.value.field == "constraint"
    assert re.fullmatch(
        r"a whole number from 1 up, .*|count .*|join them with &|put one of them into"
        r" parentheses|write for example intel&gpu, .*",
        no.value.remedy or "",
    )


@given(st.text("ab&|,()[]*2 ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        result = parse(text)
    except InvalidInput as no:
        assert no.field == "constraint"
        assert "at place" in no.message
    else:
        assert len(result.alternatives) >= 1
