"""Shares of labs from the nodes that they bought, and charges of these nodes: the composition of
FASRC ("Shares", "Trackable RESources").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import SHARES_MAX
from fairbank.core.tres import Weights


class SharedNode(msgspec.Struct, frozen=True):
    """Node. `core` is the TRES of one of its cores, 1 for the reference chip; `memory` is in
    MiB.
    """

    name: str
    cores: int
    core: Fraction
    memory: int

    @property
    def tres(self) -> Fraction:
        """Return the CPU TRES of the whole node, in cores of the reference chip."""
        return self.cores * self.core


class PublicPartition(msgspec.Struct, frozen=True):
    """Public partition. One that requeues uses the nodes of others, so it grants nothing."""

    name: str
    nodes: tuple[str, ...]
    requeues: bool = False


class Communal(msgspec.Struct, frozen=True):
    """Nodes that labs bought together, and their parts."""

    name: str
    nodes: tuple[str, ...]
    parts: Mapping[str, Fraction]


class Holdings(msgspec.Struct, frozen=True):
    """Nodes, and the accounts with a part in them."""

    nodes: Mapping[str, SharedNode]
    accounts: tuple[str, ...]
    public: tuple[PublicPartition, ...] = ()
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
    """Return the charge of a core: its peak FLOPs divided by those of the reference chip. Raises
    InvalidInput.
    """
    if not (peak > 0 and reference > 0):
        raise InvalidInput(
            "peak FLOPs are more than 0",
            field="peak",
            remedy="give those of one core, of this chip and of the reference",
        )
    return peak / reference


def node_weights(node: SharedNode) -> Weights:
    """Return TRES weights by which all cores of a node cost as much as all its memory: for memory
    NumCore * CoreTRES / TotalMem.

    Raises InvalidInput for a node without cores or memory, or with a negative price of a core.
    """
    if node.cores <= 0 or node.memory <= 0 or node.core < 0:
        raise InvalidInput(
            f"node {node.name} has no cores or no memory",
            field="node",
            remedy="give cores, core TRES and memory above 0",
        )
    return {"cpu": node.core, "mem": node.tres / node.memory}


def requeue_weights(weights: Weights) -> Weights:
    """Return the flat rate of partitions whose jobs may be interrupted: half of the `weights` of
    the reference node.
    """
    return {name: weight / 2 for name, weight in weights.items()}


def shares(held: Holdings) -> dict[str, ShareSource]:
    """Return the share of each account: an equal part of the public nodes, its own nodes, and its
    part of those bought together.

    A node in several public partitions counts once. Raises InvalidInput, naming the node, account
    or partition that is unknown, or the impossible parts.
    """
    if not held.accounts:
        raise InvalidInput(
            "there are no accounts to share among", field="accounts", remedy="name at least one"
        )
    if twice := _twice(held.accounts):
        raise InvalidInput(
            f"account {twice} is named twice", field="accounts", remedy="name each once"
        )
    public = {name for pool in held.public if not pool.requeues for name in pool.nodes}
    gratis = _tres(held, sorted(public), "public") / len(held.accounts)
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
    total = Fraction(0)
    for name in names:
        if (node := held.nodes.get(name)) is None:
            raise InvalidInput(
                f"there is no node {name!r}", field=field, remedy="name nodes of the list of nodes"
            )
        node_weights(node)
        total += node.tres
    return total


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
