"""Nodes, partitions and reservations with all that sinfo and scontrol print of them.

Instants are seconds since 1970, times seconds, sizes MiB. None stands for what is not set.
"""

from collections.abc import Set
from typing import NamedTuple

from fairbank.report.slurm.notation import ALL, NODE_SIGNS, UNLIMITED


class PartitionLine(NamedTuple):
    """Partition. `sharing` is OverSubscribe; None of a limit is no limit."""

    name: str
    nodes: str = ""
    state: str = "UP"
    is_default: bool = False
    default_time: int | None = None
    max_time: int | None = None
    grace_seconds: int = 0
    min_nodes: int = 0
    max_nodes: int | None = None
    max_cpus_per_node: int | None = None
    allowed_groups: str | None = None
    allowed_accounts: str | None = None
    denied_accounts: str | None = None
    allowed_qos: str | None = None
    denied_qos: str | None = None
    submit_hosts: str | None = None
    qos: str | None = None
    is_hidden: bool = False
    root_only: bool = False
    no_root_jobs: bool = False
    exclusive_user: bool = False
    needs_reservation: bool = False
    least_loaded: bool = False
    sharing: str = "NO"
    tier: int = 1
    factor: int = 1
    preempt_mode: str = "OFF"
    total_cpus: int = 0
    total_nodes: int = 0
    memory_per_cpu: int | None = None
    memory_per_node: int | None = None
    max_memory_per_cpu: int | None = None
    max_memory_per_node: int | None = None
    tres: str | None = None
    weights: str | None = None

    @property
    def account_rule(self) -> str:
        """Accounts that it is open or closed to."""
        return _rule("Accounts", self.allowed_accounts, self.denied_accounts)

    @property
    def qos_rule(self) -> str:
        """QOS that it is open or closed to."""
        return _rule("Qos", self.allowed_qos, self.denied_qos)

    @property
    def memory(self) -> str:
        """Default memory."""
        return _memory("DefMem", self.memory_per_cpu, self.memory_per_node)

    @property
    def max_memory(self) -> str:
        """Largest memory."""
        return _memory("MaxMem", self.max_memory_per_cpu, self.max_memory_per_node)


def _rule(what: str, allowed: str | None, denied: str | None) -> str:
    if denied and not allowed:
        return f"Deny{what}={denied}"
    return f"Allow{what}={allowed or ALL}"


def _memory(what: str, per_cpu: int | None, per_node: int | None) -> str:
    return f"{what}PerCPU={per_cpu}" if per_cpu else f"{what}PerNode={per_node or UNLIMITED}"


class NodeLine(NamedTuple):
    """Node. `state` has all its words, such as MIXED+DRAIN; `load` is in hundredths."""

    name: str
    state: str = "IDLE"
    arch: str | None = None
    sockets: int = 1
    cores: int = 1
    threads: int = 1
    boards: int = 1
    cpus: int = 1
    usable_cpus: int = 1
    allocated_cpus: int = 0
    load: int = 0
    memory: int = 1
    allocated_memory: int = 0
    free_memory: int | None = None
    reserved_memory: int | None = None
    tmp: int = 0
    weight: int = 1
    features: str | None = None
    active_features: str | None = None
    gres: str | None = None
    gres_used: str | None = None
    address: str | None = None
    host: str | None = None
    port: int | None = None
    version: str | None = None
    system: str | None = None
    partitions: str | None = None
    boot: int | None = None
    daemon_start: int | None = None
    last_busy: int | None = None
    configured_tres: str | None = None
    allocated_tres: str = ""
    reason: str | None = None
    reason_user: str = ""
    reason_time: int | None = None
    comment: str | None = None
    extra: str | None = None
    reservation: str | None = None

    @property
    def shown_state(self) -> str:
        """State that sinfo shows, with * if the node does not respond."""
        words = {word.rstrip(NODE_SIGNS) for word in self.state.split("+")}
        sign = "*" if "NOT_RESPONDING" in words or "*" in self.state else ""
        return _shown_state(words) + sign


_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_SHOWN = (
    "MAINT", "FUTURE", "REBOOT", "COMPLETING", "ALLOCATED", "MIXED", "RESERVED", "PLANNED", "IDLE",
)  # fmt: skip


def _shown_state(words: Set[str]) -> str:
    """Return the one of the state's words that counts most."""
    if "DOWN" in words:
        return "DOWN"
    for flag, busy, idle in (("DRAIN", "DRAINING", "DRAINED"), ("FAIL", "FAILING", "FAIL")):
        if words & {flag, busy, idle}:
            return busy if words & {*_BUSY, busy} else idle
    return next((word for word in _SHOWN if word in words), "UNKNOWN")


class ReservationLine(NamedTuple):
    """Reservation of nodes or licenses. `is_active` is true while it lasts."""

    name: str
    start: int = 0
    end: int = 0
    nodes: str | None = None
    node_count: int = 0
    cores: int = 0
    features: str | None = None
    partition: str | None = None
    flags: str | None = None
    tres: str | None = None
    users: str | None = None
    groups: str | None = None
    accounts: str | None = None
    licenses: str | None = None
    is_active: bool = False

    @property
    def state(self) -> str:
        """State in Slurm's word."""
        return "ACTIVE" if self.is_active else "INACTIVE"

    @property
    def seconds(self) -> int:
        """Length in seconds."""
        return self.end - self.start


class LicenseLine(NamedTuple):
    """License, with how many there are, are used and are reserved."""

    name: str
    total: int = 0
    used: int = 0
    reserved: int = 0

    @property
    def free(self) -> int:
        """Licenses that can be used."""
        return self.total - self.used
