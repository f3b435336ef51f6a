"""Shares of labs from the nodes that they bought, and charges of these nodes (FASRC, "Shares",
"Trackable RESources"). The holdings file names the nodes of a site and the accounts with a part in
them, as TOML, parsed strictly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import expand
from fairbank.core.settings_file import parse_toml
from fairbank.core.slurm_numbers import SHARES_MAX
from fairbank.core.tres import Weights
from fairbank.core.validation import describe_invalid_setting


class SharedNode(msgspec.Struct, frozen=True):
    """Node. `core` and `gpu`: TRES of one core, 1 for the reference chip, and of one GPU; `memory`
    is in MiB.
    """

    name: str
    cores: int
    core: Fraction
    memory: int
    gpus: int = 0
    gpu: Fraction = Fraction(0)

    @property
    def cpu_tres(self) -> Fraction:
        """Return the TRES of all cores, in cores of the reference chip."""
        return self.cores * self.core

    @property
    def tres(self) -> Fraction:
        """Return the TRES of the whole node, with its GPUs."""
        return self.cpu_tres + self.gpus * self.gpu


class Communal(msgspec.Struct, frozen=True):
    """Nodes that labs bought together, and their parts."""

    name: str
    nodes: tuple[str, ...]
    parts: Mapping[str, Fraction]


class Holdings(msgspec.Struct, frozen=True):
    """Nodes, and the accounts with a part in them. All accounts share the `public` nodes; a
    partition that requeues uses the nodes of others, so it grants nothing.
    """

    nodes: Mapping[str, SharedNode]
    accounts: tuple[str, ...]
    public: frozenset[str] = frozenset()
    labs: Mapping[str, tuple[str, ...]] = {}
    communal: tuple[Communal, ...] = ()


class ShareSource(msgspec.Struct, frozen=True):
    """Share by source, in cores of the reference chip."""

    gratis: Fraction = Fraction(0)
    lab: Fraction = Fraction(0)
    communal: Fraction = Fraction(0)

    @property
    def total(self) -> Fraction:
        return self.gratis + self.lab + self.communal


def core_tres(peak: Fraction, reference: Fraction) -> Fraction:
    """Return the charge of a core: its peak FLOPs divided by those of the reference chip."""
    return peak / reference


def node_weights(node: SharedNode) -> Weights:
    """Return weights by which all cores cost as much as all memory."""
    weights = {"cpu": node.core, "mem": node.cpu_tres / node.memory}
    return {**weights, "gres/gpu": node.gpu} if node.gpus else weights


def requeue_weights(weights: Weights) -> Weights:
    """Return the flat rate of partitions that requeue: half of the reference node's weights."""
    return {name: weight / 2 for name, weight in weights.items()}


def shares(held: Holdings) -> dict[str, ShareSource]:
    """Return the share of each account: an equal part of the public nodes, its own nodes, and its
    part of those bought together.

    Raises InvalidInput, naming the account or partition that is unknown, or the impossible parts.
    """
    if not held.accounts:
        raise InvalidInput(
            "there are no accounts to share among", field="accounts", remedy="name at least one"
        )
    if twice := _twice(held.accounts):
        raise InvalidInput(
            f"account {twice} is named twice", field="accounts", remedy="name each once"
        )
    gratis = _tres(held, sorted(held.public), "public") / len(held.accounts)
    lab = {name: Fraction(0) for name in held.accounts}
    communal = dict(lab)
    for account, nodes in held.labs.items():
        lab[_known(account, held, "labs")] += _tres(held, nodes, f"labs.{account}")
    for bought in held.communal:
        for account, part in _divided(bought, held).items():
            communal[account] += part
    return {name: ShareSource(gratis, lab[name], communal[name]) for name in held.accounts}


def raw_shares(parts: Mapping[str, ShareSource]) -> dict[str, int]:
    """Return integer shares for Slurm, each rounded to the nearest, halves up, so that equal labs
    stay equal.

    Their sum is therefore only about the number of reference cores. An account with any share gets
    at least 1, because 0 means no priority at all. Raises InvalidInput above Slurm's maximum.
    """
    whole = {
        name: max(int(share.total > 0), int(share.total + Fraction(1, 2)))
        for name, share in parts.items()
    }
    for name, share in whole.items():
        if share > SHARES_MAX:
            raise InvalidInput(
                f"account {name} would have {share} shares",
                field="shares",
                remedy=f"Slurm counts up to {SHARES_MAX}",
            )
    return whole


def _tres(held: Holdings, names: Sequence[str], field: str) -> Fraction:
    if twice := _twice(names):
        raise InvalidInput(f"node {twice} is named twice", field=field, remedy="name each once")
    return sum((held.nodes[name].tres for name in names), Fraction(0))


def _divided(bought: Communal, held: Holdings) -> dict[str, Fraction]:
    field = f"communal.{bought.name}"
    all_parts = sum(bought.parts.values(), Fraction(0))
    if all_parts <= 0 or min(bought.parts.values()) < 0:
        raise InvalidInput(
            f"the parts of {bought.name} cannot be",
            field=field,
            remedy="give each lab a part of 0 or more, one of them more",
        )
    tres = _tres(held, bought.nodes, field)
    return {
        _known(account, held, field): tres * part / all_parts
        for account, part in bought.parts.items()
    }


def _known(account: str, held: Holdings, field: str) -> str:
    if account not in held.accounts:
        raise InvalidInput(
            f"there is no account {account!r}", field=field, remedy="name one of the accounts"
        )
    return account


def _twice(names: Sequence[str]) -> str | None:
    """Return the first repeated name."""
    times = Counter(names)
    return next((name for name in names if times[name] > 1), None)


Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**40)]


class NodesEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Group of equal nodes. `names` and `memory_mib` (RealMemory) are as in slurm.conf; `gpus` of
    the chip `gpu` are in each.
    """

    names: str
    chip: str
    cores: Count
    memory_mib: Count
    gpus: Count | None = None
    gpu: str | None = None


class PartitionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    """Holdings file. `chips` has the peak FLOPs of one core of each chip, and of each kind of GPU,
    in one unit; a core of `reference` is worth 1.
    """

    reference: str
    accounts: tuple[Name, ...]
    chips: dict[str, Decimal]
    nodes: tuple[NodesEntry, ...]
    partitions: tuple[PartitionEntry, ...] = ()


class NodeHoldings(msgspec.Struct, frozen=True):
    """Accounts with parts in nodes, and the charge in each partition."""

    reference: str
    held: Holdings
    charges: dict[str, Weights]


def read_holdings(text: bytes) -> NodeHoldings:
    """Parse a holdings file. Raises InvalidInput, with the place in the text."""
    content = parse_toml(text, "this", field="file", parse_float=Decimal)
    try:
        file = msgspec.convert(content, HoldingsFile)
    except msgspec.ValidationError as bad:
        raise describe_invalid_setting(bad, content, HoldingsFile) from bad
    nodes = _nodes(file)
    return NodeHoldings(file.reference, _held(file, nodes), dict(_charges(file, nodes)))


def _nodes(file: HoldingsFile) -> dict[str, SharedNode]:
    """Return the nodes by name."""
    nodes: dict[str, SharedNode] = {}
    peaks = {chip: _peak(peak, f"chips.{chip}") for chip, peak in file.chips.items()}
    for place, alike in enumerate(file.nodes):
        if (alike.gpus is None) != (alike.gpu is None):
            raise InvalidInput(
                "gpus and gpu belong together: how many, and which chip they are",
                field=f"nodes[{place}]",
                remedy='write for example gpus = 4 and gpu = "v100", or neither',
            )
        for chip, field in (
            (file.reference, "reference"),
            (alike.chip, f"nodes[{place}].chip"),
            (alike.gpu or file.reference, f"nodes[{place}].gpu"),
        ):
            if chip not in peaks:
                raise InvalidInput(
                    f"there is no chip {chip[:40]!r}",
                    field=field,
                    remedy="name one of [chips], or add it there",
                )
        core = core_tres(peaks[alike.chip], peaks[file.reference])
        gpu = core_tres(peaks[alike.gpu], peaks[file.reference]) if alike.gpu else Fraction(0)
        for name in expand(alike.names, field=f"nodes[{place}].names"):
            if name in nodes:
                raise InvalidInput(
                    f"node {name} is there twice",
                    field=f"nodes[{place}].names",
                    remedy="name each node once",
                )
            nodes[name] = SharedNode(
                name, alike.cores, core, alike.memory_mib, alike.gpus or 0, gpu
            )
    return nodes


def _held(file: HoldingsFile, nodes: dict[str, SharedNode]) -> Holdings:
    public: set[str] = set()
    labs: dict[str, tuple[str, ...]] = {}
    communal: list[Communal] = []
    for place, partition in enumerate(file.partitions):
        names = tuple(expand(partition.nodes, field=f"partitions[{place}].nodes"))
        owners = (partition.lab, partition.communal, partition.half_of)
        if sum(owner is not None for owner in owners) > 1:
            remedy = "name one of lab, communal and half_of, or none for a public partition"
            raise InvalidInput(
                f"partition {partition.name} is of two kinds at once",
                field=f"partitions[{place}]",
                remedy=remedy,
            )
        if partition.lab is not None:
            own = labs.get(partition.lab, ())
            labs[partition.lab] = (*own, *(name for name in names if name not in own))
        elif partition.communal is not None:
            parts = {
                lab: _number(part, f"partitions[{place}].communal.{lab}")
                for lab, part in partition.communal.items()
            }
            communal.append(Communal(partition.name, names, parts))
        elif partition.half_of is None:
            public.update(names)
    return Holdings(nodes, file.accounts, frozenset(public), labs, tuple(communal))


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
                f"a core, a GiB or a GPU of {name} costs something else than of {first[0]}",
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
