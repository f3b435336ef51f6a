"""State of the core: tables of values, and indexes that follow from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from fairbank.cluster.job import Run
from fairbank.cluster.node import Gpus, Node, NodeState
from fairbank.cluster.partition_rules import PartitionRules, PartitionState
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.jobqueue.dependencies import DependencyJob, JobIndex
from fairbank.priority.associations import account_chain, own_association
from fairbank.priority.limits.reasons import ACCRUAL_KINDS
from fairbank.scheduling.machines.partition_access import CONFIG
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.wlm.core.accounts import AccountRules, BankAccount, account_rules, with_bank_accounts
from fairbank.wlm.core.effects import AgentMessage, StoredRow, Table
from fairbank.wlm.core.jobs import AssociationUsage, ExpectedStart, NodeGrant, WlmJob
from fairbank.wlm.core.node_states import NodeCondition
from fairbank.wlm.core.settings import WlmSettings
from fairbank.wlm.core.steps.step import WlmStep

RECORDS: frozenset[Table] = frozenset({"runs", "ended_steps", "step_usages"})
"""Tables of accounting records, which the core only writes."""
SubmissionKey = tuple[str, str, str, str]
"""Account, user, QOS and first partition of jobs."""
CHANGE = "change"
"""Counter of the changes of all tables."""


_NO_PARTITION_LIMITS: Mapping[str, Any] = {
    "min_nodes": 0,
    **dict.fromkeys(
        (
            "max_nodes", "max_seconds", "max_cpus_per_node", "max_memory_per_node",
            "max_memory_per_cpu", "accounts", "qos",
        )
    ),
}  # fmt: skip


class NodeResources(NamedTuple):
    """Resources that a node has registered: CPUs, memory and disk of /tmp in MiB, GPUs."""

    cpus: int
    memory: int
    tmp: int
    gpus: tuple[Gpus, ...] = ()

    def __str__(self) -> str:
        gpus = f", {count} GPUs" if (count := sum(gpu.number for gpu in self.gpus)) else ""
        return f"{self.cpus} CPUs, {self.memory} MiB, {self.tmp} MiB of disk{gpus}"


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """State of a node beside its configuration.

    `strays` are runs that it reported and that have ended for the core: until they are cleared, it
    gets no job. `weight` and `features` replace those of the settings. `reason_user` set the
    reason, and `reason_since` is when, in seconds since 1970. `real` is what it has registered.
    """

    condition: NodeCondition = NodeCondition.UNKNOWN
    reason: str = ""
    reason_user: str = ""
    reason_since: int = 0
    boot: str = ""
    strays: tuple[Run, ...] = ()
    real: NodeResources | None = None
    weight: int | None = None
    features: frozenset[str] | None = None
    comment: str = ""
    extra: str = ""

    def applied_to(self, node: Node, *, actual: bool = False) -> Node:
        """Return a node of the settings with its changes. Raises InvalidInput.

        Args:
            node: the node as configured.
            actual: it has what it registered, if that is more.
        """
        real = self.real if actual else None
        if self.weight is None and self.features is None and real is None:
            return node
        have = real or NodeResources(0, 0, 0)
        return replace(
            node,
            cpus=max(node.cpus, have.cpus),
            memory=max(node.memory, have.memory),
            tmp=max(node.tmp, have.tmp),
            gpus=node.gpus or have.gpus,  # by number: a job keeps those that it has
            weight=node.weight if self.weight is None else self.weight,
            features=node.features if self.features is None else self.features,
        )

    @property
    def state(self) -> tuple[NodeState, str]:
        """State and reason as scheduling sees them."""
        state = self.condition.state
        if self.strays and state.is_usable:
            return NodeState.DRAINED, "earlier processes are being ended"
        return state, self.reason


class CoreState:
    """State of the cluster. Only a `Transition` changes it, after the rows are loaded.

    Invariants: the tables are all that is stored; everything else follows from them. `index` has
    every job. `_dependents` has the pending jobs with open dependencies, by the job ids, or by user
    and name, on which they depend. `_by_node` has the jobs with processes on each node. `table` is
    the configured nodes with their present states. `_accounts` and `_limits_accrual` follow from
    the settings and `bank_accounts`. `partition_settings` are configured partitions as they were in
    the settings when a request changed them. `change_numbers` has the number of the last change of
    each table, so that an answer may be "no change"; after a restart, that of any table.
    `submitted` are the numbers of jobs and tasks that have not ended. `expected_starts` are those
    of the last pass that planned ahead, by job id, and `plan_changes` is how often they have
    changed. `backfilled` is how many jobs backfill has started since the controller began.
    `registered` are the nodes that are connected: others get no work, whatever their condition is.
    """

    def __init__(self, settings: WlmSettings) -> None:
        self.settings = settings
        self.configured = {node.name: node for node in settings.nodes}
        self.from_settings = dict(self.configured)
        self.jobs: dict[int, WlmJob] = {}
        self.steps: dict[str, WlmStep] = {}
        self.nodes = {name: NodeStatus() for name in self.configured}
        self.partitions = {rules.name: rules for rules in settings.partitions}
        self.configured_partitions = frozenset(self.partitions)
        self.partition_settings: dict[str, PartitionRules] = {}
        self.reservations: dict[str, Reservation] = {}
        self.messages: dict[int, AgentMessage] = {}
        self.counters: dict[str, int] = {}
        self.usage: dict[str, AssociationUsage] = {}
        self.qos_usage: dict[str, AssociationUsage] = {}
        self.bank_accounts: dict[str, BankAccount] = {}
        self._accounts: AccountRules | None = None
        self._limits_accrual: bool | None = None
        self.tables: Mapping[Table, dict[Any, Any]] = {
            "jobs": self.jobs,
            "steps": self.steps,
            "nodes": self.nodes,
            "partitions": self.partitions,
            "partition_settings": self.partition_settings,
            "reservations": self.reservations,
            "messages": self.messages,
            "counters": self.counters,
            "usage": self.usage,
            "qos_usage": self.qos_usage,
            "accounts": self.bank_accounts,
        }
        self.index = JobIndex()
        self.expected_starts: Mapping[int, ExpectedStart] = {}
        self.plan_changes = self.backfilled = 0
        self.change_numbers: dict[Table, int] = dict.fromkeys(self.tables, 0)
        self.registered: set[str] = set()
        self.submitted = Counter[SubmissionKey]()
        self._dependents: defaultdict[Hashable, set[int]] = defaultdict(set)
        self._by_node: dict[str, set[int]] = {name: set() for name in self.configured}
        self._table: NodeTable | None = None
        self._acceptance_table: NodeTable | None = None

    def frozen(self) -> CoreState:
        """Return a copy for a pass in another thread: changes of this state leave it as it is.

        Both share the values, which are frozen, and the tables that no pass reads.
        """
        other = copy(self)
        other._accounts, other._table = self.accounts, self.table
        other.jobs, other.submitted = self.jobs.copy(), self.submitted.copy()
        other.usage, other.qos_usage = self.usage.copy(), self.qos_usage.copy()
        other.nodes, other.configured = self.nodes.copy(), self.configured.copy()
        other.partitions, other.reservations = self.partitions.copy(), self.reservations.copy()
        other._by_node = {name: numbers.copy() for name, numbers in self._by_node.items()}
        return other

    @property
    def accounts(self) -> AccountRules:
        """Accounts and users, with their limits, shares and QOS."""
        if self._accounts is None:
            rules = account_rules(self.settings.accounting)
            self._accounts = with_bank_accounts(rules, self.bank_accounts)
        return self._accounts

    def account_reason(self, request: PendingJob, partition: str) -> str | None:
        """Return Slurm's reason if the user of a job may not use its account or QOS there."""
        rules, place = self.accounts, (request.account, request.user, partition)
        if rules.associations and own_association(rules.associations, *place) is None:
            return "InvalidAccount"
        allowed = own_association(rules.allowed_qos, *place) or ()
        needs_qos = self.settings.accounting.needs_qos and allowed and request.qos
        return "InvalidQOS" if needs_qos and request.qos not in allowed else None

    @property
    def limits_accrual(self) -> bool:
        """True if only so many jobs of an account, a user or a QOS age at once."""
        if self._limits_accrual is None:
            accounting = self.settings.accounting
            limits = [qos.limits for qos in accounting.qos.values()]
            limits += [record.limits for record in self.accounts.associations.values()]
            self._limits_accrual = (
                self.settings.priority.by_factors
                and accounting.enforced.limits
                and any(not ACCRUAL_KINDS.isdisjoint(one.jobs) for one in limits)
            )
        return self._limits_accrual

    @property
    def acceptance_table(self) -> NodeTable:
        """Nodes and partitions as if all were up, with the limits that refuse a submission."""
        if self._acceptance_table is None:
            limits = {} if self.settings.scheduling.part_limits != "NO" else _NO_PARTITION_LIMITS
            rules = [
                replace(one, state=PartitionState.UP, **limits) for one in self._effective_rules()
            ]
            self._acceptance_table = NodeTable([*self.configured.values()], rules)
        return self._acceptance_table

    @property
    def table(self) -> NodeTable:
        """Nodes in their present states, and partitions."""
        if self._table is None:
            states = {name: self._node_state(name) for name in self.nodes}
            table = NodeTable([*self.configured.values()], self._effective_rules())
            self._table = table.with_states(states)
        return self._table

    def _effective_rules(self) -> Iterator[PartitionRules]:
        """Yield the partitions as they are tested (slurm-rules.md, "Partitions").

        Accounts are tested only if they are enforced, and with those below them. With the limits of
        the partition, the lists give its reason.
        """
        records, is_early = self.accounts.associations, self.settings.scheduling.part_limits != "NO"
        for rules in self.partitions.values():
            lists = {"accounts": rules.accounts, "qos": rules.qos, "groups": rules.groups}
            if (accounts := rules.accounts) is not None:
                below = frozenset(
                    name
                    for name, user, _ in records
                    if not user
                    and any(above.name in accounts.names for above in account_chain(records, name))
                )
                lists["accounts"] = replace(accounts, below=below) if records else None
            for name, access in lists.items():
                if is_early and access is not None:
                    lists[name] = replace(access, reason=CONFIG)
            yield replace(rules, **lists)

    def load(self, rows: Iterable[StoredRow]) -> None:
        """Take over the rows that an earlier core stored; those of nodes that are gone are ignored.

        Accounting records need not be among them, and those of `accounts` count with a bank only.
        """
        for table, key, value in rows:
            if table in RECORDS or (table == "nodes" and key not in self.configured):
                continue
            if table == "accounts" and not self.settings.bank.server:
                continue
            self.put(table, int(key) if table in ("jobs", "messages") else key, value)
        # Stored with the next change, which must not get this number again.
        self.counters[CHANGE] = self.note_change(self.tables)

    def note_change(self, tables: Iterable[Table]) -> int:
        """Record a change of some tables, and return its number."""
        number = self.counters.get(CHANGE, 0) + 1
        self.change_numbers.update(dict.fromkeys(tables, number))
        return number

    def put(self, table: Table, key: Any, value: Any) -> Any:
        """Set a value, or delete it with None. Return the value before."""
        rows = self.tables[table]
        before = rows.get(key)
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value
        if table == "jobs":
            self._reindex(before, value)
        elif table in ("partitions", "accounts"):
            self._table = self._acceptance_table = None
            self._accounts = self._limits_accrual = None
        elif table == "nodes":
            self._note_node(key)
        return before

    def _note_node(self, name: str) -> None:
        configured, actual = self.from_settings[name], self.settings.scheduling.actual_resources
        node = self.nodes[name].applied_to(configured, actual=actual)
        if node != self.configured[name]:
            self.configured[name] = node
            self._table = self._acceptance_table = None
        elif self._table is not None:
            self._table = self._table.with_states({name: self._node_state(name)})

    def set_registered(self, node: str, *, is_registered: bool) -> None:
        """Note whether a node is connected. It is not stored: each core begins without nodes."""
        if node not in self.nodes or (node in self.registered) is is_registered:
            return
        (self.registered.add if is_registered else self.registered.discard)(node)
        self.counters[CHANGE] = self.note_change(("nodes",))
        if self._table is not None:
            self._table = self._table.with_states({node: self._node_state(node)})

    def _node_state(self, name: str) -> tuple[NodeState, str]:
        state, reason = self.nodes[name].state
        if state.is_usable and name not in self.registered:
            return NodeState.NOT_RESPONDING, "Not responding"
        return state, reason

    def job_of(self, run: Run) -> WlmJob | None:
        """Return the job that has this run now; None if it is another one's, or an earlier one."""
        job = self.jobs.get(run.job_id)
        return job if job is not None and job.run is not None and job.run.run == run else None

    def threads_of(self, nodes: Iterable[str]) -> int:
        """Return the CPUs that a core has on each of some nodes."""
        return min((node.threads for node in self.nodes_of(nodes)), default=1)

    def nodes_of(self, names: Iterable[str]) -> Iterator[Node]:
        """Yield the nodes with these names that are configured."""
        return (self.configured[name] for name in names if name in self.configured)

    def nodes_in(self, rules: PartitionRules) -> list[Node]:
        """Return the nodes of a partition, in the order of the settings."""
        names = frozenset(rules.nodes)
        return [node for name, node in self.configured.items() if not names or name in names]

    def wanted_in(self, partition: str, request: PendingJob) -> ResourceRequest:
        """Return what a job requests, with the defaults of a partition."""
        rules, wanted = self.partitions.get(partition), request.wanted
        return wanted if rules is None else rules.with_default_memory(wanted)

    def steps_of(self, run: Run) -> list[WlmStep]:
        """Return the steps of a run that have tasks, by number."""
        steps = (step for step in self.steps.values() if step.run == run)
        return sorted(steps, key=lambda step: step.number)

    def jobs_on(self, node: str) -> list[WlmJob]:
        """Return the jobs with processes on a node, by number."""
        return [self.jobs[number] for number in sorted(self._by_node.get(node, ()))]

    def grants_on(self, node: str) -> list[tuple[int, NodeGrant]]:
        """Return what jobs with processes on a node have of it, with their numbers."""
        return [
            (job.number, grant)
            for job in self.jobs_on(node)
            if job.run is not None
            for grant in job.run.allocation.grants
            if grant.binding.node == node
        ]

    def dependents(self, job: DependencyJob) -> set[int]:
        """Return the numbers of the pending jobs that may depend on a job."""
        keys: list[Hashable] = [job.number, job.array, (job.user, job.name)]
        return set().union(*(self._dependents.get(key, set()) for key in keys))

    def _reindex(self, before: WlmJob | None, after: WlmJob | None) -> None:
        for job, sign in ((before, -1), (after, 1)):
            if job is not None and not job.state.has_ended:
                self.submitted[_submission_key(job)] += sign * max(len(job.tasks), 1)
        if before is not None:
            for key in _dependency_keys(before):
                self._dependents[key].discard(before.number)
                if not self._dependents[key]:
                    del self._dependents[key]
            for node in _nodes(before):
                self._by_node[node].discard(before.number)
        if after is None:
            if before is not None:
                self.index.remove(before.number)
            return
        for key in _dependency_keys(after):
            self._dependents[key].add(after.number)
        for node in _nodes(after):
            self._by_node[node].add(after.number)
        seen = after.for_dependencies()
        if self.index.with_number(after.number) != seen:
            self.index.put(seen)


def _nodes(job: WlmJob) -> tuple[str, ...]:
    return () if job.run is None else job.run.left


def _submission_key(job: WlmJob) -> SubmissionKey:
    request = job.request
    return request.account, request.user, request.qos, request.partitions[0]


def _dependency_keys(job: WlmJob) -> set[Hashable]:
    if not job.dependencies.open or job.state.has_ended:
        return set()
    own = (job.request.user, job.submission.name)
    return {own if item.job is None else item.job for item in job.dependencies.open}
