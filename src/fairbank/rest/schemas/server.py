"""The server: its state and user, clusters, tokens, and the journal's chains."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import UNSET, Struct, UnsetType, structs

from fairbank.bank.token import Token
from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.final_state import FinalState
from fairbank.core.time import iso
from fairbank.core.tres import BillingRule
from fairbank.rest.schemas.answers import Envelope, Myself, ProjectRole
from fairbank.rest.schemas.envelope import convert_to

if TYPE_CHECKING:
    from fairbank.service.access.identity import Identity


class Health(Struct, frozen=True, kw_only=True):
    """The server answers. `bank` is its name (`server.name`), `as_of` its time."""

    status: Literal["ok"] = "ok"
    bank: str
    as_of: str


def myself(identity: Identity, user: str | None) -> Myself:
    """Return the user and the permissions of a request; `user` is the login name."""
    return Myself(
        actor=identity.actor,
        uid=identity.uid,
        user=user,
        superuser=identity.superuser,
        admin=identity.admin,
        roles=[
            ProjectRole(project=project, role=role.value)
            for project, role in sorted(identity.roles.items())
        ],
        clusters=sorted(identity.clusters),
        scopes=sorted(identity.scopes),
    )


class PartitionRow(Struct, frozen=True, kw_only=True):
    """A partition and its prices.

    `weights` are billing units for one of each TRES (memory: for one MiB), exact, as a decimal or a
    fraction; null: jobs are billed by their CPUs. `adding` is how weighted TRES are combined.
    `node_cpus`, `node_memory` and `node_gres` (by TRES) are the size of a node, `def_mem` the
    memory of jobs that request none, for each CPU or node (`def_mem_per`); memory in MiB, 0 for all
    of a node; null: the settings do not have it. `node_kinds` has the GRES of each kind of node, if
    these differ. `exclusive`: each job takes whole nodes.
    """

    name: str
    resource: str
    weights: dict[str, str] | None
    adding: Literal["sum", "max_tres", "max_tres_gres"]
    node_cpus: int | None
    node_memory: int | None
    node_gres: dict[str, int] | None
    node_kinds: list[dict[str, int]]
    def_mem: int | None
    def_mem_per: Literal["cpu", "node"] | None
    exclusive: bool


class ClusterRow(Struct, frozen=True, kw_only=True):
    """A cluster. The factor of a QOS that `qos_factors` does not list is 1. Jobs of a QOS in
    `qos_resources` are billed on its resource instead of the partition's. A run that ends in one
    of `free_states` costs nothing (policy.free_states). Jobs that name no partition go to
    `default_partition`; null: they are refused. `categories` are those of the settings
    (policy.categories)."""

    schema_name: ClassVar[str] = "fairbank.cluster/1"
    name: str
    partitions: list[PartitionRow]
    qos_factors: dict[str, str]
    qos_resources: dict[str, str]
    free_states: list[FinalState]
    default_partition: str | None
    categories: list[str]


def cluster_row(
    cluster: Cluster, free_states: tuple[FinalState, ...], categories: tuple[str, ...]
) -> ClusterRow:
    """Return a cluster with its partitions, sorted by name.

    Args:
        free_states: final job states that cost nothing at this bank.
        categories: categories in the settings of this bank.
    """
    return ClusterRow(
        name=cluster.name,
        partitions=[
            partition_row(partition) for _, partition in sorted(cluster.partitions.items())
        ],
        qos_resources=dict(sorted(cluster.qos_resources.items())),
        qos_factors={name: str(factor) for name, factor in sorted(cluster.qos_factors.items())},
        free_states=list(free_states),
        default_partition=cluster.default_partition,
        categories=list(categories),
    )


def cluster_record(row: ClusterRow) -> Cluster:
    """Return the cluster of a row, which does not have its capacity and size."""
    return Cluster(
        row.name,
        {partition.name: _partition_record(partition) for partition in row.partitions},
        {name: Fraction(factor) for name, factor in row.qos_factors.items()},
        qos_resources=row.qos_resources,
        default_partition=row.default_partition,
    )


def partition_row(partition: Partition) -> PartitionRow:
    """Return a partition with its prices."""
    weights, default = partition.weights, partition.default_memory
    return PartitionRow(
        name=partition.name,
        resource=partition.resource,
        weights=(
            None
            if weights is None
            else {name: str(weight) for name, weight in sorted(weights.items())}
        ),
        adding=partition.billing_rule.value,
        node_cpus=partition.size.cpus,
        node_memory=partition.size.memory,
        node_gres=None if partition.size.gres is None else dict(partition.size.gres),
        node_kinds=[dict(gres) for gres in partition.size.kinds],
        def_mem=None if default is None else default.mebibytes,
        def_mem_per=(
            None if default is None else "cpu" if default.unit is MemoryUnit.CPU else "node"
        ),
        exclusive=partition.exclusive,
    )


def _partition_record(row: PartitionRow) -> Partition:
    weights, unit = row.weights, row.def_mem_per
    return Partition(
        row.name,
        row.resource,
        None if weights is None else {name: Fraction(text) for name, text in weights.items()},
        BillingRule(row.adding),
        NodeSize(row.node_cpus, row.node_memory, row.node_gres, tuple(row.node_kinds)),
        None if unit is None else Memory(row.def_mem or 0, MemoryUnit(unit)),
        row.exclusive,
    )


class TokenRow(Struct, frozen=True, kw_only=True):
    """A token without its secret.

    `parent` is the token that created it, null if the user signed in otherwise. `revoked` is the
    time at which it or one of its ancestors was revoked first.
    """

    schema_name: ClassVar[str] = "fairbank.token/1"
    id: int
    uid: int
    label: str
    scopes: list[str]
    created: str
    expires: str
    revoked: str | None
    parent: int | None


class IssuedToken(TokenRow, frozen=True, kw_only=True):
    """A new token with its secret, which is shown once. `warnings`, if any, name likely
    mistakes."""

    secret: str
    warnings: list[str] | UnsetType = UNSET


def token_row(token: Token) -> TokenRow:
    """Return a token without its secret."""
    return convert_to(
        TokenRow,
        token,
        scopes=list(token.scopes),
        created=iso(token.created),
        expires=iso(token.expires),
        revoked=None if token.revoked is None else iso(token.revoked),
    )


def issued_token(token: Token, secret: str, warnings: list[str]) -> IssuedToken:
    """Return a new token with its secret.

    Args:
        token: the token as it is stored.
        secret: the text that the client sends; the bank does not store it.
        warnings: likely mistakes; empty: the field is left out.
    """
    return IssuedToken(
        **structs.asdict(token_row(token)), secret=secret, warnings=warnings or UNSET
    )


class ChainHead(Struct, frozen=True, kw_only=True):
    """The last entry of an allocation's journal."""

    allocation: int
    seq: int
    link: str


class AuditFigures(Struct, frozen=True, kw_only=True):
    """Number of entries, and the last links.

    The registry is the journal of projects, roles and tokens.
    """

    entries: int
    registry_seq: int
    registry_link: str
    heads: list[ChainHead]


class AuditAnswer(Envelope, frozen=True, kw_only=True):
    """A page of last links. Send `next` as `after` for the next page."""

    schema_name: ClassVar[str] = "fairbank.audit/1"
    data: AuditFigures
    next: str | None = None
