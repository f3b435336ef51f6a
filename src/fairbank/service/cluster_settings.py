"""Settings of clusters: partitions with their sizes and prices. Each error names the key."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Annotated

import msgspec

from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.node import COUNT_MAX
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.gres import gres_counts, most_gres, parse_gres
from fairbank.core.slurm_numbers import parse_memory
from fairbank.core.tres import BillingRule, Weights, parse_weights

Uid = Annotated[int, msgspec.Meta(ge=0, le=ids.UID_MAX)]
MemorySize = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)] | str


class PartitionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Resource that the partition bills, and its weights: TRESBillingWeights as in slurm.conf.

    `node_cpus`, `node_memory` (RealMemory less MemSpecLimit: 256G, or MiB) and `node_gres` (Gres:
    gpu:a100:4, or "" for none) are the size of each node. Where nodes have other types of GPUs than
    others, `node_gres` is a list with the text of each kind of node: ["gpu:a100:4", "gpu:t4:4"];
    whole nodes cost what the dearest kind that has the requested types does. Quotes need the size
    for --exclusive and --mem=0. `def_mem_per_cpu` and `def_mem_per_node` are the memory of jobs
    that request none: DefMemPerCPU or DefMemPerNode, of which a partition has one; 0 is all memory
    of the node. The submission policy gives `def_mem_per_cpu` to jobs where Slurm's partition has
    no default. `exclusive` is OverSubscribe=EXCLUSIVE: each job takes whole nodes, as with
    --exclusive. It needs `node_cpus`, and `node_gres` where GRES have weights.
    """

    resource: str
    weights: str | None = None
    node_cpus: Annotated[int, msgspec.Meta(ge=1, le=COUNT_MAX)] | None = None
    node_memory: MemorySize | None = None
    node_gres: str | tuple[str, ...] | None = None
    def_mem_per_cpu: MemorySize | None = None
    def_mem_per_node: MemorySize | None = None
    exclusive: bool = False


class ClusterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Partitions and prices of a cluster.

    `qos_factors` are price factors of QOS, 0 for a free one. `qos_resources` are the resources that
    jobs of a QOS are billed on instead of the partition's, such as debug = "debug": credit of its
    own. `adding` is how weighted TRES add up: sum, max_tres or max_tres_gres. `agents` are the uids
    that report runs. `capacity` is what all nodes together bill, in billing units (SU per hour) by
    resource, such as the number of cores or GPUs; `fairbank report centre` compares with it.
    `cpus` and `gpus` (0: none) are the processors and GPUs of all nodes, for its utilisation.
    `def_mem_per_cpu` or `def_mem_per_node` is that of partitions without one of their own.
    `default_partition` is the partition of jobs that name none, where the submission policy takes
    Slurm's default partition.
    """

    partitions: dict[str, PartitionSettings] = {}
    qos_factors: dict[str, str | int | float] = {}
    qos_resources: dict[str, str] = {}
    adding: BillingRule = BillingRule.MAX_TRES
    agents: frozenset[Uid] = frozenset()
    capacity: dict[str, str | int | float] = {}
    cpus: Annotated[int, msgspec.Meta(ge=1, le=COUNT_MAX)] | None = None
    gpus: Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)] | None = None
    def_mem_per_cpu: MemorySize | None = None
    def_mem_per_node: MemorySize | None = None
    default_partition: str | None = None


def read_cluster(name: str, settings: ClusterSettings) -> Cluster:
    """Return a cluster by its settings. Raises InvalidInput with the key."""
    here = f"clusters.{name}"
    default_memory = _default_memory(settings, here)
    partitions = {
        ids.name(partition_name, field=f"{here}.partitions.{partition_name}"): _partition(
            partition_name,
            partition,
            settings.adding,
            default_memory,
            f"{here}.partitions.{partition_name}",
        )
        for partition_name, partition in settings.partitions.items()
    }
    factors = {
        qos: _factor(value, f"{here}.qos_factors.{qos}")
        for qos, value in settings.qos_factors.items()
    }
    resources = {
        ids.name(qos, field=f"{here}.qos_resources"): ids.kind(
            resource, field=f"{here}.qos_resources.{qos}"
        )
        for qos, resource in settings.qos_resources.items()
    }
    billed = {*resources.values(), *(partition.resource for partition in partitions.values())}
    capacity = {
        resource: _capacity(value, billed, resource, f"{here}.capacity.{resource}")
        for resource, value in settings.capacity.items()
    }
    default = settings.default_partition
    if default is not None and default not in partitions:
        raise InvalidInput(
            f"the cluster has no partition {default!r}",
            field=f"{here}.default_partition",
            remedy=f"there are: {', '.join(sorted(partitions)) or 'none'}",
        )
    return Cluster(
        name, partitions, factors, capacity, resources, default, settings.cpus, settings.gpus
    )


def _partition(
    name: str,
    settings: PartitionSettings,
    adding: BillingRule,
    default_memory: Memory | None,
    here: str,
) -> Partition:
    kinds = _gres_of_nodes(settings.node_gres, f"{here}.node_gres")
    size = NodeSize(
        settings.node_cpus,
        _node_memory(settings.node_memory, f"{here}.node_memory"),
        None if settings.node_gres is None else most_gres(kinds),
        kinds if len(kinds) > 1 else (),
    )
    weights = settings.weights and parse_weights(settings.weights, field=f"{here}.weights")
    if settings.exclusive:
        _check_whole_nodes(size, weights or {}, here)
    return Partition(
        name,
        ids.kind(settings.resource, field=f"{here}.resource"),
        weights or None,
        adding,
        size,
        _default_memory(settings, here) or default_memory,
        settings.exclusive,
    )


def _check_whole_nodes(size: NodeSize, weights: Weights, here: str) -> None:
    """Raise InvalidInput if a size is missing without which no job on whole nodes has a price."""
    missing = None
    if size.cpus is None:
        missing = "node_cpus", "node_cpus = 64"
    elif size.gres is None and any(name.startswith("gres/") for name in weights):
        missing = "node_gres", 'node_gres = "gpu:a100:4", or "" for none'
    if missing is not None:
        setting, example = missing
        raise InvalidInput(
            f"each job takes whole nodes there (exclusive), and {setting} is missing",
            field=f"{here}.{setting}",
            # Not the import at once: it needs a bank that runs.
            remedy=f"add it, such as {example}, as scontrol show node has it; or remove exclusive,"
            " start the bank, and take the lines that fairbank slurm import --dry-run --settings"
            " FILE prints",
        )


def _default_memory(settings: PartitionSettings | ClusterSettings, here: str) -> Memory | None:
    """Return the memory of jobs that request none; None if it is not set."""
    by_cpu, by_node = settings.def_mem_per_cpu, settings.def_mem_per_node
    if by_cpu is not None and by_node is not None:
        raise InvalidInput(
            "the default memory is given by CPU and by node",
            field=f"{here}.def_mem_per_node",
            remedy="keep one of both, as slurm.conf has it",
        )
    if by_cpu is not None:
        return Memory(_mebibytes(by_cpu, f"{here}.def_mem_per_cpu"), MemoryUnit.CPU)
    if by_node is not None:
        return Memory(_mebibytes(by_node, f"{here}.def_mem_per_node"))
    return None


def _node_memory(value: str | int | None, field: str) -> int | None:
    mebibytes = None if value is None else _mebibytes(value, field)
    if mebibytes == 0:
        raise InvalidInput("a node has memory", field=field, remedy="such as 256G")
    return mebibytes


def _mebibytes(value: str | int, field: str) -> int:
    mebibytes = parse_memory(value, field=field) if isinstance(value, str) else value
    if mebibytes > COUNT_MAX:
        raise InvalidInput(
            f"{value!r} is out of range", field=field, remedy=f"at most {COUNT_MAX} MiB"
        )
    return mebibytes


def _gres_of_nodes(texts: str | Sequence[str] | None, field: str) -> tuple[Mapping[str, int], ...]:
    """Return the GRES of each kind of node by TRES, without and with their types."""
    listed = [texts] if isinstance(texts, str) else texts or ()
    return tuple(gres_counts(parse_gres(text, field=field)) if text else {} for text in listed)


def _capacity(value: str | float, billed: Collection[str], resource: str, field: str) -> Fraction:
    if resource not in billed:
        raise InvalidInput(
            f"no partition or QOS of the cluster bills {resource!r}",
            field=field,
            remedy=f"billed are: {', '.join(sorted(billed)) or 'none'}",
        )
    try:
        units = Fraction(str(value))
    except (ValueError, ZeroDivisionError) as bad:
        raise InvalidInput(
            f"{value!r} is not a number of billing units", field=field, remedy="such as 2048"
        ) from bad
    if not 0 < units <= 10**9:
        raise InvalidInput(
            f"{value!r} is out of range",
            field=field,
            remedy="a capacity is more than 0 and at most 1,000,000,000 billing units",
        )
    return units


def _factor(value: str | float, field: str) -> Fraction:
    try:
        factor = Fraction(str(value))
    except (ValueError, ZeroDivisionError) as bad:
        raise InvalidInput(
            f"{value!r} is not a number", field=field, remedy='write for example 0.5 or "1/3"'
        ) from bad
    if not 0 <= factor <= 1_000_000:
        raise InvalidInput(
            f"{value!r} is out of range",
            field=field,
            remedy="a factor lies between 0 and 1,000,000",
        )
    return factor
