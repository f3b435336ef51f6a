"""A node: what it has, what it is called, whether it may be used, and how gladly."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import msgspec

from fairbank.core.errors import Malformed

WEIGHT_MAX = 2**32 - 1
COUNT_MAX = 2**31 - 1
"""The most CPUs, GPUs of a kind and MiB of a node: Slurm's 32 bits."""
_SIGNS = frozenset("&|,()[]*")
"""What a name of a feature may not hold: it is said in constraints."""


class NodeState(Enum):
    """How a node is, as far as the jobs on it do not say. The value is Slurm's word."""

    UP = "up"
    POWERING_UP = "powering_up"
    POWERED_DOWN = "powered_down"
    DRAINED = "drained"
    FAILED = "fail"
    DOWN = "down"
    NOT_RESPONDING = "no_respond"
    FUTURE = "future"

    @property
    def usable(self) -> bool:
        """Whether jobs may start there; what is powered down is woken for them."""
        return self in _PENALTIES

    @property
    def penalty(self) -> int:
        """What counts before weight in choosing: nodes that must be woken come last (facts, section 7.1)."""
        return _PENALTIES.get(self, 0)


_PENALTIES = {NodeState.UP: 0, NodeState.POWERING_UP: 1, NodeState.POWERED_DOWN: 2}


class Gpus(NamedTuple):
    """Some GPUs of one type. Where a job asks, an empty type means any."""

    type: str
    number: int


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One host of the machine. `memory` and `tmp` are MiB, `threads` the CPUs of a core: a job gets whole cores.

    `weight`: of nodes that would do the lightest are taken. Raises Malformed, naming the field, for what no node can be.
    """

    name: str
    cpus: int = 1
    threads: int = 1
    memory: int = 1
    tmp: int = 0
    gpus: tuple[Gpus, ...] = ()
    features: frozenset[str] = frozenset()
    weight: int = 1
    state: NodeState = NodeState.UP

    def __post_init__(self) -> None:
        if not self.name or any(sign in self.name for sign in " ,\t\n[]"):
            raise Malformed(
                f"{self.name[:64]!r} is not the name of a node",
                field="name",
                remedy="one host, without blanks, commas or brackets",
            )
        for field, value, low, high in (
            ("cpus", self.cpus, 1, COUNT_MAX),
            ("threads", self.threads, 1, self.cpus),
            ("memory", self.memory, 1, COUNT_MAX),
            ("tmp", self.tmp, 0, COUNT_MAX),
            ("weight", self.weight, 0, WEIGHT_MAX),
        ):
            check_integer(value, low, high, field=f"{self.name}.{field}")
        check_gpus(self.gpus, field=f"{self.name}.gpus")
        for feature in self.features:
            if not feature or _SIGNS.intersection(feature) or any(map(str.isspace, feature)):
                remedy = f"a word without blanks and without {' '.join(sorted(_SIGNS))}"
                raise Malformed(
                    f"{feature[:64]!r} is not a feature",
                    field=f"{self.name}.features",
                    remedy=remedy,
                )

    @property
    def cores(self) -> int:
        """What jobs share it by; the CPUs of a core that is not whole are nobody's."""
        return self.cpus // self.threads


def check_integer(value: int, low: int, high: int, *, field: str) -> int:
    """`value`, from `low` to `high`. Raises Malformed, naming `field`."""
    if type(value) is int and low <= value <= high:
        return value
    raise Malformed(
        f"{value!r} is not a {field.rpartition('.')[2]}",
        field=field,
        remedy=f"a whole number from {low} to {high}",
    )


def check_gpus(gpus: Iterable[Gpus], *, field: str) -> None:
    """That each type is named once and counted. Raises Malformed, naming `field`."""
    seen: set[str] = set()
    for kind, number in gpus:
        if kind in seen:
            raise Malformed(
                f"the GPUs {kind or 'of any type'} are given twice",
                field=field,
                remedy="give each type once",
            )
        seen.add(kind)
        check_integer(number, 1, COUNT_MAX, field=field)
