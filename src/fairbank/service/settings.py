"""Settings: one TOML file, read strictly. Each error names the key and the remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from fairbank.bank.policy import GrantCategory, GrantRange, Policy
from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.node import COUNT_MAX
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core import ids
from fairbank.core.errors import Forbidden, InvalidInput, NotFound
from fairbank.core.gres import gres_counts, most_gres, parse_gres
from fairbank.core.settings_file import parse_toml, read_whole, toml_string
from fairbank.core.tres import BillingRule, Weights, parse_memory, parse_weights
from fairbank.core.validation import WORD, describe_invalid_setting, validated_settings
from fairbank.service.access.identity import Staff, VisibleJobs

Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Word = Annotated[str, msgspec.Meta(pattern=WORD)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Uid = Annotated[int, msgspec.Meta(ge=0, le=ids.UID_MAX)]
MemorySize = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)] | str


class LogFormat(Enum):
    """Format of the server's log. AUTO is SHORT on a terminal and JSON elsewhere."""

    AUTO = "auto"
    JSON = "json"
    SHORT = "short"


class WriteQueuePlace(Enum):
    """Place of the write queue: threads of the server, or a process of its own."""

    THREADS = "threads"
    PROCESS = "process"


class StoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Database of the bank.

    `journal` is SQLite's journal mode: "wal", or "truncate", which is slower (default: "wal", or
    "truncate" if the SQLite library is too old for WAL).
    """

    url: str
    journal: Literal["wal", "truncate"] | None = None


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses of the server: always `socket`, and TCP if `port` is given. TCP needs tokens or
    MUNGE.

    `name`: the bank's name, which every answer has; MUNGE credentials are bound to it
    (`server_name` of the clients). `munge_plain`: also accept credentials without a payload (`munge
    -n`), which are bound to no request: a user who sees one before it is used can send any request
    with it, as its owner. `waiting_max`: maximum number of queued requests; beyond it the
    server answers 503. `unix_groups`: users whose Unix groups contain a project's gid are its
    members. `visible_jobs`: jobs and usage that users who are not staff see: "own" and those of
    projects that they lead; "project": those of all their projects; or "all". `log`: "json",
    "short", or "auto": JSON, but short lines and only warnings on a terminal. `write_queue`: on
    PostgreSQL, requests are applied in "threads" of the server or in a "process" of its own, which
    uses a second processor; on SQLite always in threads.
    """

    socket: str
    host: Word = "127.0.0.1"
    port: Port | None = None
    munge: bool = False
    munge_socket: str | None = None
    munge_plain: bool = False
    name: Word = "fairbank"
    waiting_max: Positive = 10_000
    unix_groups: bool = True
    visible_jobs: VisibleJobs = VisibleJobs.PROJECT
    log: LogFormat = LogFormat.AUTO
    write_queue: WriteQueuePlace = WriteQueuePlace.PROCESS


class StaffSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Unix users by uid. The user who runs the server is always a superuser."""

    superusers: frozenset[Uid] = frozenset()
    admins: frozenset[Uid] = frozenset()


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


class HistorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records kept beside the ledger.

    `fair_share_days`: days for which the records of `fairbank share record` are kept; 0 for ever.
    """

    fair_share_days: Annotated[int, msgspec.Meta(ge=0, le=36_600)] = 731


class BankSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings. `secret_file` holds the key of the tokens' digests."""

    store: StoreSettings
    server: ServerSettings
    secret_file: str
    staff: StaffSettings = StaffSettings()
    policy: Policy = Policy()
    clusters: dict[str, ClusterSettings] = {}
    history: HistorySettings = HistorySettings()

    def staff_members(self) -> Staff:
        """Return staff and agents; the user who runs the server is a superuser."""
        agents: dict[int, frozenset[str]] = {}
        for name, cluster in self.clusters.items():
            for uid in cluster.agents:
                agents[uid] = agents.get(uid, frozenset()) | {name}
        return Staff(
            self.staff.superusers | {os.getuid()},
            self.staff.admins,
            agents,
            self.server.visible_jobs,
        )

    def cluster_map(self) -> dict[str, Cluster]:
        """Return the clusters by name. Raises InvalidInput with the key."""
        return {
            ids.cluster(name, field=f"clusters.{name}"): _cluster(name, cluster)
            for name, cluster in self.clusters.items()
        }


def _cluster(name: str, settings: ClusterSettings) -> Cluster:
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


def read_settings(path: Path) -> BankSettings:
    """Read a settings file. Raises NotFound if it is missing, Forbidden if unreadable, InvalidInput
    with the key.
    """
    try:
        with path.open("rb") as file:
            text = read_whole(file, str(path), field="config")
    except PermissionError as error:
        raise Forbidden(
            f"you may not read the settings {path}",
            field="config",
            remedy="run the command as the bank's user",
        ) from error
    except OSError as error:
        raise NotFound(
            f"cannot read the settings {path}: {error.strerror}",
            field="config",
            remedy="make them with: fairbank init",
        ) from error
    settings_table = parse_toml(text, str(path), field="config")
    with validated_settings(str(path), BankSettings):
        _check_mappings(settings_table)
        settings = msgspec.convert(settings_table, BankSettings)
        settings.cluster_map()
    return settings


def _check_mappings(settings_table: dict[str, Any]) -> None:
    """Check each category, cluster and partition by itself: msgspec does not name the keys of a
    mapping in its errors.

    Raises InvalidInput.
    """
    policy = settings_table.get("policy")
    categories = policy.get("categories") if isinstance(policy, dict) else None
    for name, category in categories.items() if isinstance(categories, dict) else ():
        ids.kind(name, field=f"policy.categories.{name}", noun="category")
        _check_category(name, category)
    clusters = settings_table.get("clusters")
    for name, cluster in clusters.items() if isinstance(clusters, dict) else ():
        partitions = cluster.get("partitions") if isinstance(cluster, dict) else None
        for partition_name, partition in partitions.items() if isinstance(partitions, dict) else ():
            _check_table(
                partition, PartitionSettings, f"clusters.{name}.partitions.{partition_name}"
            )
        _check_table(cluster, ClusterSettings, f"clusters.{name}")


def _check_category(name: str, category: object) -> None:
    place = f"policy.categories.{name}"
    resources = category.get("resources") if isinstance(category, dict) else None
    for resource, limits in resources.items() if isinstance(resources, dict) else ():
        _check_table(limits, GrantRange, f"{place}.resources.{resource}")
        lowest, highest = limits.get("lowest", 0), limits.get("highest")
        if highest is not None and highest < lowest:
            raise InvalidInput(
                f"the highest grant {highest} is below the lowest grant {lowest}",
                field=f"{place}.resources.{resource}.highest",
                remedy=f"{lowest} or more; or leave it out for any amount",
            )
        ids.kind(resource, field=f"{place}.resources.{resource}")
    _check_table(category, GrantCategory, place)
    if isinstance(category, dict) and "purpose" in category:
        ids.comment(category["purpose"], field=f"{place}.purpose")


def _check_table(value: object, kind: type[msgspec.Struct], place: str) -> None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as bad:
        raise describe_invalid_setting(bad, BankSettings, place) from bad


def example(directory: Path, url: str, name: str = "fairbank", clusters: str | None = None) -> str:
    """Return the settings file that `fairbank init` writes: the required keys, and clusters whose
    agent is the user of this process.

    Args:
        directory: the directory of the secret and of the socket.
        url: the URL of the store.
        name: the bank's name. It is written if it is one word of ASCII, else "fairbank".
        clusters: the tables of the clusters; None: one example cluster.

    Raises:
        InvalidInput: TOML cannot hold the directory or the URL: it must be UTF-8.
    """
    is_word = re.match(WORD, name) is not None
    named = f"name = {toml_string(name)}" if is_word else 'name = "fairbank"'
    return f"""\
# Settings of this Fairbank. The reference page "Settings" explains every key.
secret_file = {_toml_string(f"{directory}/secret", "DIRECTORY")}

[store]
url = {_toml_string(url, "--store")}

[server]
socket = {_toml_string(f"{directory}/fairbank.sock", "DIRECTORY")}
{named}   # in every answer; server_name of clients that use MUNGE

[policy]
enforce = true            # false: refuse no job, only record what would have been refused
overrun = "write_off"     # or "record": usage beyond what is left is charged all the same

{_example_cluster() if clusters is None else clusters}"""


def _example_cluster() -> str:
    return f"""\
[clusters.local]
adding = "max_tres"
agents = [{os.getuid()}]

[clusters.local.partitions.cpu]
resource = "cpu"
weights = "CPU=1.0,Mem=0.5G"
# node_cpus = 64          # size of each node, for quotes of --exclusive and --mem=0
# node_memory = "256G"
# def_mem_per_cpu = "2G"  # memory of jobs that request none

[clusters.local.partitions.gpu]
resource = "gpu"
weights = "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0"
"""


def _toml_string(value: str, field: str) -> str:
    """Return a text as a TOML string. Raises InvalidInput if it is not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError as bad:
        raise InvalidInput(
            f"{value!a} is not UTF-8", field=field, remedy="give it a name in UTF-8"
        ) from bad
    return toml_string(value)
