"""Holdings file: the nodes of a site and the accounts with a part in them, as TOML, parsed
strictly.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import expand
from fairbank.core.tres import Weights
from fairbank.core.validation import describe_invalid_setting
from fairbank.priority.fairshare.site_shares import (
    Communal,
    Holdings,
    PublicPartition,
    SharedNode,
    core_tres,
    node_weights,
    requeue_weights,
)

PAGE = "docs/howto/compose-shares.md"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**40)]


class NodesTold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Group of equal nodes. `names` and `memory_mib` (RealMemory) are as in slurm.conf."""

    names: str
    chip: str
    cores: Count
    memory_mib: Count


class PartitionTold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Partition, and the owner of its nodes.

    `lab`: one lab. `communal`: several labs, with their parts. `half_of`: others; jobs may be
    interrupted and pay half the price of this node. None of these: the public.
    """

    name: Name
    nodes: str
    lab: str | None = None
    communal: dict[str, Decimal] | None = None
    half_of: str | None = None


class HoldingsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Holdings file. `chips` has the peak FLOPs of one core of each chip, in any unit; a core of
    `reference` is worth 1.
    """

    reference: str
    accounts: tuple[Name, ...]
    chips: dict[str, Decimal]
    nodes: tuple[NodesTold, ...]
    partitions: tuple[PartitionTold, ...] = ()


class NodeHoldings(msgspec.Struct, frozen=True):
    """Accounts with parts in nodes, and the charge in each partition. `reference`: chip whose core
    is worth 1.
    """

    reference: str
    held: Holdings
    charges: dict[str, Weights]


def read_holdings(text: str) -> NodeHoldings:
    """Parse a holdings file. Raises InvalidInput, with the place in the text, for invalid TOML and
    for impossible values.
    """
    try:
        told = msgspec.convert(tomllib.loads(text, parse_float=Decimal), HoldingsFile)
    except tomllib.TOMLDecodeError as bad:
        raise InvalidInput(
            f"this is not TOML: {bad}", field="file", remedy="fix the line named"
        ) from bad
    except msgspec.ValidationError as bad:
        raise describe_invalid_setting(bad, HoldingsFile, PAGE) from bad
    nodes = _nodes(told)
    return NodeHoldings(told.reference, _held(told, nodes), dict(_charges(told, nodes)))


def _nodes(file: HoldingsFile) -> dict[str, SharedNode]:
    """Return the nodes by name."""
    nodes: dict[str, SharedNode] = {}
    peaks = {chip: _peak(peak, f"chips.{chip}") for chip, peak in file.chips.items()}
    for place, alike in enumerate(file.nodes):
        for chip, field in ((file.reference, "reference"), (alike.chip, f"nodes[{place}].chip")):
            if chip not in peaks:
                raise InvalidInput(
                    f"there is no chip {chip[:40]!r}",
                    field=field,
                    remedy="name one of [chips], or add it there",
                )
        core = core_tres(peaks[alike.chip], peaks[file.reference])
        for name in expand(alike.names, field=f"nodes[{place}].names"):
            if name in nodes:
                raise InvalidInput(
                    f"node {name} is there twice",
                    field=f"nodes[{place}].names",
                    remedy="name each node once",
                )
            nodes[name] = SharedNode(name, alike.cores, core, alike.memory_mib)
    return nodes


def _held(file: HoldingsFile, nodes: dict[str, SharedNode]) -> Holdings:
    public: list[PublicPartition] = []
    labs: dict[str, tuple[str, ...]] = {}
    communal: list[Communal] = []
    for place, partition in enumerate(file.partitions):
        names = tuple(expand(partition.nodes, field=f"partitions[{place}].nodes"))
        if (
            sum(said is not None for said in (partition.lab, partition.communal, partition.half_of))
            > 1
        ):
            remedy = "say one of lab, communal and half_of, or none for a public partition"
            raise InvalidInput(
                f"partition {partition.name} is of two kinds at once",
                field=f"partitions[{place}]",
                remedy=remedy,
            )
        if partition.lab is not None:
            labs[partition.lab] = (
                *labs.get(partition.lab, ()),
                *(name for name in names if name not in labs.get(partition.lab, ())),
            )
        elif partition.communal is not None:
            parts = {
                lab: _number(part, f"partitions[{place}].communal.{lab}")
                for lab, part in partition.communal.items()
            }
            communal.append(Communal(partition.name, names, parts))
        else:
            public.append(
                PublicPartition(partition.name, names, requeues=partition.half_of is not None)
            )
    return Holdings(nodes, file.accounts, tuple(public), labs, tuple(communal))


def _charges(file: HoldingsFile, nodes: dict[str, SharedNode]) -> Iterator[tuple[str, Weights]]:
    """Yield the charge of each partition. Slurm has one price for each partition, so its nodes must
    be worth the same.
    """
    names: set[str] = set()
    for place, partition in enumerate(file.partitions):
        field = f"partitions[{place}]"
        if partition.name in names:
            raise InvalidInput(
                f"partition {partition.name} is there twice",
                field=f"{field}.name",
                remedy="name each once",
            )
        names.add(partition.name)
        if partition.half_of is not None:
            yield (
                partition.name,
                requeue_weights(_weights([partition.half_of], nodes, f"{field}.half_of")),
            )
        else:
            yield partition.name, _weights(expand(partition.nodes), nodes, f"{field}.nodes")


def _weights(names: Sequence[str], nodes: dict[str, SharedNode], field: str) -> Weights:
    first: tuple[str, Weights] | None = None
    for name in names:
        if name not in nodes:
            raise InvalidInput(
                f"there is no node {name[:40]!r}", field=field, remedy="name nodes of [[nodes]]"
            )
        weights = node_weights(nodes[name])
        if first is not None and weights != first[1]:
            remedy = (
                "Slurm has one price a partition: give each kind of nodes a partition of its own"
            )
            raise InvalidInput(
                f"a core or a GiB of {name} costs something else than of {first[0]}",
                field=field,
                remedy=remedy,
            )
        first = first or (name, weights)
    if first is None:
        raise InvalidInput(
            "a partition without nodes has no price", field=field, remedy="name its nodes"
        )
    return first[1]


def _peak(peak: Decimal, field: str) -> Fraction:
    """Return FLOPs as a fraction. The price of a core is divided by them, so 0 is refused."""
    if not peak.is_finite() or not 0 < peak <= 10**30:
        raise InvalidInput(
            f"{peak} is out of range: peak FLOPs are more than 0",
            field=field,
            remedy="a number of more than 0, up to 1e30",
        )
    return Fraction(peak)


def _number(number: Decimal, field: str) -> Fraction:
    if not number.is_finite() or not 0 <= number <= 10**30:
        raise InvalidInput(f"{number} is out of range", field=field, remedy="a number from 0 up")
    return Fraction(number)
