"""Site file of an administrator: accepted and rejected content."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.tres import parse_weights
from fairbank.priority.fairshare.site_shares import (
    NodeHoldings,
    ShareSource,
    raw_shares,
    read_holdings,
    shares,
)


@pytest.fixture
def page(checkout: Path) -> str:
    """Return the file that the documentation shows."""
    return (
        (checkout / "docs" / "howto" / "compose-shares.md")
        .read_text()
        .split("```toml\n")[1]
        .split("```")[0]
    )


def test_shares_of_the_example_page(page: str) -> None:
    result = shares(read_holdings(page.encode()).held)
    gratis = Fraction(2 * 32, 3)
    assert result == {
        "lab1": ShareSource(gratis, Fraction(2 * 32), Fraction(2 * 64 * 1, 4 * 4)),
        "lab2": ShareSource(gratis, lab=Fraction(32 + 2 * 425)),
        "lab3": ShareSource(gratis, communal=Fraction(2 * 64 * 3, 4 * 4)),
    }
    assert raw_shares(result) == {"lab1": 93, "lab2": 903, "lab3": 45}


def test_charges_of_the_example_page(page: str) -> None:
    assert read_holdings(page.encode()).charges == {
        "shared": parse_weights("CPU=1.0,Mem=0.25G"),
        "lab1": parse_weights("CPU=1.0,Mem=0.25G"),
        "school": parse_weights("CPU=0.25,Mem=0.0625G"),
        "gpu": parse_weights("CPU=1.0,Mem=0.25G,GRES/gpu=425"),
        "serial_requeue": parse_weights("CPU=0.5,Mem=0.125G"),
        "gpu_requeue": parse_weights("CPU=0.5,Mem=0.125G,GRES/gpu=212.5"),
    }


def page_with(**changes: str) -> NodeHoldings:
    parts = {
        "head": 'reference = "new"\naccounts = ["a", "b"]',
        "chips": "[chips]\nnew = 10\nold = 2.5",
        "nodes": '[[nodes]]\nnames = "n[1-4]"\nchip = "new"\ncores = 8\nmemory_mib = 4096',
        "partitions": "",
    }
    return read_holdings("\n".join((parts | changes).values()).encode())


def partitions(*kinds: str) -> str:
    return "\n".join(
        f'[[partitions]]\nname = "p{place}"\n{kind}' for place, kind in enumerate(kinds)
    )


OLD = '\n[[nodes]]\nnames = "o1"\nchip = "old"\ncores = 8\nmemory_mib = 4096'


def test_numbers_are_exact_decimals() -> None:
    result = page_with(
        chips="[chips]\nnew = 0.3\nold = 0.1",
        nodes=f'[[nodes]]\nnames = "n1"\nchip = "new"\ncores = 8\nmemory_mib = 4096{OLD}',
    )
    assert result.held.nodes["o1"].core == Fraction(1, 3)


def test_nodes_in_two_partitions_of_a_lab_count_once() -> None:
    result = page_with(
        partitions=partitions('nodes = "n[1-2]"\nlab = "a"', 'nodes = "n[2-3]"\nlab = "a"')
    )
    assert shares(result.held)["a"].lab == 3 * 8


def test_requeued_nodes_grant_nothing_and_a_node_in_two_public_partitions_counts_once() -> None:
    result = page_with(
        partitions=partitions(
            'nodes = "n[1-2]"', 'nodes = "n2"', 'nodes = "n[1-4]"\nhalf_of = "n1"'
        )
    )
    assert shares(result.held)["b"].gratis == 2 * 8 / 2


GPU = '[[nodes]]\nnames = "g[1-2]"\nchip = "new"\ncores = 8\nmemory_mib = 4096\n'


def test_requeue_partition_of_gpu_nodes_charges_half_for_gpus_and_grants_nothing() -> None:
    """A GPU of 40 is 4 cores of 10: a public node counts 8 + 2 x 4, and one that a lab bought
    twice as many GPUs. All of them may requeue, at half the price of g1.
    """
    result = page_with(
        chips="[chips]\nnew = 10\nfast = 40",
        nodes=f'{GPU}gpus = 2\ngpu = "fast"\n'
        + GPU.replace("g[1-2]", "h1")
        + 'gpus = 4\ngpu = "fast"',
        partitions=partitions(
            'nodes = "g[1-2]"', 'nodes = "h1"\nlab = "a"', 'nodes = "g[1-2],h1"\nhalf_of = "g1"'
        ),
    )
    assert shares(result.held) == {
        "a": ShareSource(Fraction(16), lab=Fraction(8 + 4 * 4)),
        "b": ShareSource(Fraction(16)),
    }
    assert result.charges["p0"] == parse_weights("CPU=1,Mem=2G,GRES/gpu=4")
    assert result.charges["p2"] == parse_weights("CPU=0.5,Mem=1G,GRES/gpu=2")


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"nodes": f"{GPU}gpus = 2"}, "nodes[0]", "gpus and gpu belong together"),
        ({"nodes": f'{GPU}gpu = "new"'}, "nodes[0]", "gpus and gpu belong together"),
        ({"nodes": f'{GPU}gpus = 0\ngpu = "new"'}, "nodes[0].gpus", "at least 1"),
        ({"nodes": f'{GPU}gpus = 2\ngpu = "v9"'}, "nodes[0].gpu", "there is no chip 'v9'"),
        ({"head": "reference = "}, "file", "this is not TOML"),
        ({"head": 'reference = "newest"\naccounts = ["a"]'}, "reference", "no chip 'newest'"),
        ({"head": 'accounts = ["a"]'}, "reference", "reference is missing"),
        ({"head": 'reference = "new"\naccounts = [""]'}, "accounts[0]", "accounts"),
        ({"chips": "[chips]\nnew = nan"}, "chips.new", "NaN is out of range"),
        ({"chips": "[chips]\nnew = inf"}, "chips.new", "Infinity is out of range"),
        ({"chips": "[chips]\nnew = -1"}, "chips.new", "-1 is out of range"),
        (
            {"chips": "[chips]\nnew = 0"},
            "chips.new",
            "0 is out of range: peak FLOPs are more than 0; a number of more than 0",
        ),
        (
            {"partitions": partitions('nodes = "n1"\nhalf_of = 3')},
            "partitions[0].half_of",
            "expected text, or nothing, got a whole number",
        ),
        ({"chips": "[chips]\nold = 1"}, "reference", "no chip 'new'"),
        (
            {"nodes": '[[nodes]]\nnames = "n1"\nchip = "new"\ncores = 0\nmemory_mib = 1'},
            "nodes[0].cores",
            "a whole number of at least 1",
        ),
        (
            {"nodes": '[[nodes]]\nnames = "n1"\nchip = "new"\ncores = 8.5\nmemory_mib = 1'},
            "nodes[0].cores",
            "a whole number",
        ),
        (
            {"nodes": '[[nodes]]\nnames = "n[1-"\nchip = "new"\ncores = 8\nmemory_mib = 1'},
            "nodes[0].names",
            "never closed",
        ),
        (
            {"nodes": '[[nodes]]\nnames = "n1,n1"\nchip = "new"\ncores = 8\nmemory_mib = 1'},
            "nodes[0].names",
            "node n1 is there twice",
        ),
        (
            {"nodes": '[[nodes]]\nname = "n1"\nchip = "new"\ncores = 8\nmemory_mib = 1'},
            "nodes[0].name",
            "there are: names, chip",
        ),
        ({"partitions": partitions('nodes = "n9"')}, "partitions[0].nodes", "no node 'n9'"),
        ({"partitions": partitions('nodes = ""')}, "partitions[0].nodes", "without nodes"),
        (
            {"partitions": partitions('nodes = "n1"\nhalf_of = "n9"')},
            "partitions[0].half_of",
            "no node 'n9'",
        ),
        (
            {"partitions": partitions('nodes = "n1"\nlab = "a"\nhalf_of = "n1"')},
            "partitions[0]",
            "two kinds at once",
        ),
        (
            {"partitions": partitions('nodes = "n1"\ncommunal = { a = nan }')},
            "partitions[0].communal.a",
            "NaN is out of range",
        ),
        (
            {"partitions": partitions('nodes = "n1"').replace("p0", "")},
            "partitions[0].name",
            "expected text, at least 1 character",
        ),
        (
            {"partitions": partitions('nodes = "n1"', 'nodes = "n2"').replace("p1", "p0")},
            "partitions[1].name",
            "partition p0 is there twice",
        ),
    ],
)
def test_error_has_location_and_remedy(changes: dict[str, str], field: str, says: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        page_with(**changes)
    assert wrong.value.field == field
    assert says in f"{wrong.value.message}; {wrong.value.remedy}"


def test_partition_of_unequal_nodes_has_no_price() -> None:
    nodes = f'[[nodes]]\nnames = "n1"\nchip = "new"\ncores = 8\nmemory_mib = 4096{OLD}'
    with pytest.raises(
        InvalidInput, match="a core, a GiB or a GPU of o1 costs something else than of n1"
    ) as wrong:
        page_with(nodes=nodes, partitions=partitions('nodes = "n1,o1"'))
    assert wrong.value.field == "partitions[0].nodes"
    half = page_with(nodes=nodes, partitions=partitions('nodes = "n1,o1"\nhalf_of = "n1"'))
    assert half.charges["p0"] == parse_weights("CPU=0.5,Mem=1G"), "unless it charges by one of them"
