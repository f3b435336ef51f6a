"""Lists of hosts as Slurm reads and writes them.

Source: docs/reference/slurm-rules.md, "Hostlists".
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import HOSTS_MAX, compress, expand


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", "n1"),
        ("login", "login"),
        ("n[1-3]", "n1 n2 n3"),
        ("n[01-03]", "n01 n02 n03"),
        ("n[001-3]", "n001 n002 n003"),
        ("n[8-011]", "n8 n9 n10 n11"),
        ("n[5-5]", "n5"),
        ("n[5-]", "n5"),
        ("n[1,3-4],n2", "n1 n3 n4 n2"),
        ("n1, n2\tn3\n,,n1", "n1 n2 n3 n1"),
        ("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"),
        ("a[1-2]b[1-2]c[1-2]", "a1b1c1 a1b1c2 a2b1c1 a2b1c2 a1b2c1 a1b2c2 a2b2c1 a2b2c2"),
        ("n[1-2]-ib", "n1-ib n2-ib"),
        ("odd]name", "odd]name"),
        ("", ""),
    ],
)
def test_list_names_its_hosts_in_its_order(text: str, hosts: str) -> None:
    assert expand(text) == hosts.split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[1-2", "[ at place 2 of 'n[1-2' is never closed"),
        ("a,n[1[2]]", "[ at place 6 of 'a,n[1[2]]' stands inside another"),
        ("n[]", "'' in [] is not a range"),
        ("n[-5]", "'-5' in [-5] is not a range"),
        ("n[1-x]", "'1-x' in [1-x] is not a range"),
        ("n[9-3]", "the range 9-3 runs backwards"),
        ("n[0-65536]", "the range 0-65536 is too long"),
        ("a[0-65535]b[0-9]c[0-9]", "names too many hosts"),
        ("a[0-9999]b[0-999]", "names too many hosts"),
    ],
)
def test_list_that_cannot_be_read_is_reported_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as no:
        expand(text, field="nodelist")
    assert message in no.value.message
    assert no.value.field == "nodelist"
    assert re.fullmatch(
        r"write for example n\[01-10,12\],login|write 3-9|at most (1048576 in a list, )?65536"
        r" (hosts )?in a range",
        no.value.remedy or "",
    )


def test_hosts_of_a_whole_list_are_counted_together() -> None:
    with pytest.raises(InvalidInput, match=r"too many hosts"):
        expand(",".join(["a[0-65535]"] * (HOSTS_MAX // 65_536 + 1)))


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ("n1 n3 n2", "n[1,3,2]"),
        ("n1 n2 n3", "n[1-3]"),
        ("n9 n10", "n[9-10]"),
        ("n09 n10", "n[09-10]"),
        ("n9 n010", "n[9,010]"),
        ("n1", "n1"),
        ("login login", "login,login"),
        ("n1 login n2", "n1,login,n2"),
        ("n1-ib n2-ib", "n1-ib,n2-ib"),
        ("r1n1 r1n2 r2n1", "r1n[1-2],r2n1"),
        ("7 8", "[7-8]"),
        ("", ""),
    ],
)
def test_hosts_become_a_list_that_keeps_their_order(hosts: str, text: str) -> None:
    assert compress(hosts.split()) == text


@given(st.lists(st.from_regex(r"[a-c]{0,2}[0-9]{1,4}(-x)?", fullmatch=True)))
def test_written_hostlist_reads_back(names: list[str]) -> None:
    assert expand(compress(names)) == names
