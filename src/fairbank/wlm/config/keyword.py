"""Keyword of slurm.conf, or key of wlm.toml: its group, accepted form and effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from fairbank.wlm.config.forms import MEMORY_LIMIT, ValueForm

TOP, CLUSTER, SCHEDULING = "", "cluster", "scheduling"
PRIORITY, JOBS, BANK = "priority", "jobs", "bank"
TABLES = (CLUSTER, SCHEDULING, PRIORITY, JOBS, BANK)
"""Groups that are there once; TOP is the top of wlm.toml."""
NODES, PARTITIONS, QOS, ASSOCIATIONS = "nodes", "partitions", "qos", "associations"
NAMES = {NODES: "NodeName", PARTITIONS: "PartitionName", QOS: "name", ASSOCIATIONS: "account"}
"""Groups that are there once for each of a kind, with the keyword of the name."""

MACHINES = "clusters of several machines are"
"""Subject of the note of `later`."""


class KeywordEffect(Enum):
    """Effect of a keyword."""

    YES = "yes"
    NO = "no effect"
    REFUSED = "refused"


class Keyword(NamedTuple):
    """Keyword of a group, or with `*` at its end all that begin so.

    form      of its value; None: any
    fields    where its values go: paths in `WlmSettings`, or fields of a node, partition and so on
    note      why it, or one of its words, has no effect, or why it is refused
    repeats   each line adds to the lines before
    """

    name: str
    group: str
    form: ValueForm | None = None
    fields: str = ""
    effect: KeywordEffect = KeywordEffect.YES
    note: str = ""
    repeats: bool = False

    @property
    def key(self) -> str:
        """Its name in wlm.toml."""
        return snake_case(self.name)

    @property
    def is_in_slurm_conf(self) -> bool:
        """False for a key that only wlm.toml has, which is in lower case."""
        return self.name != self.name.lower()

    @property
    def targets(self) -> tuple[str, ...]:
        """The fields to which its values go."""
        return tuple(self.fields.split()) or (f"{self.group}.{self.key}",)


def later(name: str, group: str, form: ValueForm, missing: str) -> Keyword:
    """Return a keyword that is checked, for what is not built yet."""
    return Keyword(name, group, form, effect=KeywordEffect.NO, note=f"{missing} not built yet")


def no_gpu_memory(group: str) -> Keyword:
    """Return DefMemPerGPU, which is checked and has no effect."""
    note = "memory is requested by node or CPU"
    return Keyword("DefMemPerGPU", group, MEMORY_LIMIT, effect=KeywordEffect.NO, note=note)


def without_effect(group: str, names: str) -> Iterator[Keyword]:
    """Yield keywords that are accepted with any value."""
    return (Keyword(name, group, effect=KeywordEffect.NO) for name in names.split())


def refused(group: str, names: str, why: str) -> Iterator[Keyword]:
    """Yield keywords that are refused with this sentence."""
    return (Keyword(name, group, effect=KeywordEffect.REFUSED, note=why) for name in names.split())


_BEFORE_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return a keyword in lower case with underscores.

    >>> snake_case("MaxCPUsPerNode"), snake_case("TRESBillingWeights")
    ('max_cpus_per_node', 'tres_billing_weights')
    """
    plain = name.replace("CPUs", "Cpus").replace("PrEp", "Prep")
    return _BEFORE_WORD.sub("_", plain).lower()
