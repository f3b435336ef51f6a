"""Node of a cluster: its resources, features, weight and state."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from typing import NamedTuple

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.gres import GPU, Gres, gres_counts

WEIGHT_MAX = 2**32 - 1
COUNT_MAX = 2**31 - 1
"""Largest number of CPUs, of GPUs of a type, and of MiB on a node: 32 bits in Slurm."""
_SIGNS = frozenset("&|,()[]*")
"""Operators of constraints, which a feature cannot contain."""


class NodeState(Enum):
    """State of a node apart from its jobs. The value is Slurm's word."""

    UP = "up"
    POWERING_UP = "powering_up"
    POWERED_DOWN = "powered_down"
    DRAINED = "drained"
    FAILED = "fail"
    DOWN = "down"
    NOT_RESPONDING = "no_respond"
    FUTURE = "future"

    @property
    def is_usable(self) -> bool:
        """True if jobs can start on the node. Slurm powers up a powered-down node for a job."""
        return self in _PENALTIES

    @property
    def penalty(self) -> int:
        """Rank that precedes the weight in node selection: nodes that must be powered up come last.

        Source: docs/reference/slurm-rules.md, "Node selection".
        """
        return _PENALTIES.get(self, 0)


_PENALTIES = {NodeState.UP: 0, NodeState.POWERING_UP: 1, NodeState.POWERED_DOWN: 2}


class Gpus(NamedTuple):
    """Number of GPUs of one type. In a request, an empty type means any type."""

    type: str
    number: int


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """Node of the cluster. `memory` and `tmp` are in MiB, `threads` is the number of CPUs per core.
    `sockets` are only shown.
    `reason` is why it has its state, as an administrator or Slurm wrote it, and `reason_since` from
    when in seconds since 1970; None if unknown.

    A job gets whole cores. Of the nodes that fit, those with the lowest `weight` are selected.
    Raises InvalidInput, naming the field.
    """

    name: str
    cpus: int = 1
    threads: int = 1
    sockets: int = 1
    memory: int = 1
    tmp: int = 0
    gpus: tuple[Gpus, ...] = ()
    features: frozenset[str] = frozenset()
    weight: int = 1
    state: NodeState = NodeState.UP
    reason: str = ""
    reason_since: int | None = None

    def __post_init__(self) -> None:
        if not self.name or any(sign in self.name for sign in " ,\t\n[]"):
            raise InvalidInput(
                f"{self.name[:64]!r} is not the name of a node",
                field="name",
                remedy="one host, without blanks, commas or brackets",
            )
        for field, value, low, high in (
            ("cpus", self.cpus, 1, COUNT_MAX),
            ("threads", self.threads, 1, self.cpus),
            ("sockets", self.sockets, 1, self.cpus),
            ("memory", self.memory, 1, COUNT_MAX),
            ("tmp", self.tmp, 0, COUNT_MAX),
            ("weight", self.weight, 0, WEIGHT_MAX),
        ):
            check_integer(value, low, high, field=f"{self.name}.{field}")
        check_gpus(self.gpus, field=f"{self.name}.gpus")
        for feature in self.features:
            if not feature or _SIGNS.intersection(feature) or any(map(str.isspace, feature)):
                remedy = f"a word without blanks and without {' '.join(sorted(_SIGNS))}"
                raise InvalidInput(
                    f"{feature[:64]!r} is not a feature",
                    field=f"{self.name}.features",
                    remedy=remedy,
                )

    @property
    def cores(self) -> int:
        """Number of whole cores. CPUs of an incomplete core are not used."""
        return self.cpus // self.threads


def check_integer(value: int, low: int, high: int, *, field: str) -> int:
    """Check an integer, which a Boolean is not, and return it.

    Args:
        value: value to check.
        low: lowest accepted value.
        high: highest accepted value.
        field: name for the error; its last part, behind a dot, says what the value is.

    Raises:
        InvalidInput: the value is no integer from `low` to `high`.
    """
    if type(value) is int and low <= value <= high:
        return value
    raise InvalidInput(
        f"{value!r} is not a {field.rpartition('.')[2]}",
        field=field,
        remedy=f"a whole number from {low} to {high}",
    )


def gpu_counts(gpus: Iterable[Gpus]) -> dict[str, int]:
    """Return GPUs as TRES, without and with their types: `gres/gpu`, `gres/gpu:a100`."""
    return gres_counts(Gres(GPU, *one) for one in gpus)


def total_tres(nodes: Collection[Node]) -> dict[str, int]:
    """Return what nodes have together; memory is in MiB."""
    return {
        "cpu": sum(node.cpus for node in nodes),
        "mem": sum(node.memory for node in nodes),
        "node": len(nodes),
        f"gres/{GPU}": sum(gpu.number for node in nodes for gpu in node.gpus),
    }


def check_gpus(gpus: Iterable[Gpus], *, field: str) -> None:
    """Check that each type occurs once and has a valid number.

    Raises InvalidInput, naming `field`.
    """
    seen: set[str] = set()
    for kind, number in gpus:
        if kind in seen:
            raise InvalidInput(
                f"the GPUs {kind or 'of any type'} are given twice",
                field=field,
                remedy="give each type once",
            )
        seen.add(kind)
        check_integer(number, 1, COUNT_MAX, field=field)
