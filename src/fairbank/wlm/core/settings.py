"""Settings of the workload manager, with the defaults of Slurm where Slurm has the setting."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo

import msgspec

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules, PreemptMode
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.submission.values import resource_limits
from fairbank.core.tres import BillingRule
from fairbank.priority.associations import AssociationKey
from fairbank.priority.fairshare.tree import ShareAssociation
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.usage import LimitRecord, QosLimits
from fairbank.priority.settings import PrioritySettings
from fairbank.scheduling.machines.nodes import Preemption
from fairbank.scheduling.slurm.parameters import KILL_WAIT, SchedulerParameters

SCRIPT_MAX = 4 << 20
"""Largest job script in bytes: default of max_script_size."""
REQUEUE_WAIT = 120
"""Default of cred_expire in seconds."""

# The fields of `DaemonSettings` and `JobSettings` are the keys of [cluster] and [jobs].


class DaemonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the daemons. Times are in seconds.

    The first of `slurmctld_host` is the controller; empty: this host. An empty path stands for one
    in the directory of the cluster.
    `gpu_root` has dev, proc and sys, in which the node daemon looks for GPUs.
    """

    cluster_name: str = "cluster"
    slurmctld_host: tuple[str, ...] = ()
    slurmctld_debug: str = "info"
    slurmctld_syslog_debug: str = "quiet"
    slurmctld_log_file: str = ""
    slurmd_timeout: int = 300
    slurmd_debug: str = "info"
    slurmd_syslog_debug: str = "quiet"
    slurmd_log_file: str = ""
    state_save_location: str = ""
    private_data: frozenset[str] = frozenset()
    min_job_age: int = 300
    max_job_count: int = 10_000
    max_array_size: int = 1_001
    first_job_id: int = 1
    max_job_id: int = 67_043_328
    return_to_service: int = 0
    message_timeout: int = 10
    metrics_port: int | None = None
    gpu_root: str = "/"


class SchedulingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the scheduler. Memory is in MiB.

    backfill          SchedulerType
    whole_nodes       every job gets whole nodes (SelectType=select/linear)
    counts_memory     jobs request memory (SelectTypeParameters with _Memory)
    by_core           jobs get whole cores; else single CPUs (CR_CPU)
    part_limits       EnforcePartLimits
    memory_per_cpu, _per_node, max_memory_per_cpu, _per_node
                      of partitions that have none of their own, which have these already
    licenses          number of each
    affinity          jobs are bound to their cores (TaskPlugin)
    actual_resources  nodes have what they register, not what is configured
    """

    backfill: bool = True
    parameters: SchedulerParameters = SchedulerParameters()
    holds_after_prolog: bool = True
    script_max: int = SCRIPT_MAX
    whole_nodes: bool = False
    counts_memory: bool = True
    by_core: bool = True
    preemption: Preemption = Preemption(mode=PreemptMode.OFF)
    part_limits: str = "NO"
    memory_per_cpu: int | None = None
    memory_per_node: int | None = None
    max_memory_per_cpu: int | None = None
    max_memory_per_node: int | None = None
    licenses: Mapping[str, int] = {}
    affinity: bool = False
    actual_resources: bool = False


class AccountingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of accounts, QOS and their limits.

    `needs_association`: a job needs an account that its user may use. `needs_qos`: it needs a QOS
    that its account may use: one of `allowed_qos`, of which the first is the default; an
    association that has none, nor an account above it, may use all. `tres` are counted beside
    Slurm's own. `shares` are those of associations; all others have one. A QOS has its rules of
    preemption in `SchedulingSettings`.
    """

    enforced: Enforced = Enforced(limits=False)
    needs_association: bool = False
    needs_qos: bool = False
    tres: tuple[str, ...] = ()
    billing_rule: BillingRule = BillingRule.SUM
    qos: Mapping[str, QosLimits] = {}
    qos_flags: Mapping[str, frozenset[str]] = {}
    usage_thresholds: Mapping[str, float] = {}
    associations: Mapping[AssociationKey, LimitRecord] = {}
    allowed_qos: Mapping[AssociationKey, tuple[str, ...]] = {}
    shares: tuple[ShareAssociation, ...] = ()


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of starts and ends of jobs. Times are in seconds, None for no limit.

    An empty path stands for no program. Of `inactive_limit` 0 is no limit either.
    """

    kill_wait: int = KILL_WAIT
    over_time_limit: int | None = 0
    job_requeue: bool = True
    max_batch_requeue: int = 5
    requeue_wait: int = REQUEUE_WAIT
    requeue_exit: frozenset[int] = frozenset()
    requeue_exit_hold: frozenset[int] = frozenset()
    job_file_append: bool = False
    prolog: str = ""
    epilog: str = ""
    prolog_timeout: int | None = None
    epilog_timeout: int | None = None
    unkillable_step_timeout: int = 60
    unkillable_step_program: str = ""
    batch_start_timeout: int = 10
    complete_wait: int = 0
    propagate_resource_limits: frozenset[str] = resource_limits("ALL", "")
    propagate_resource_limits_except: frozenset[str] = frozenset()
    job_acct_gather_frequency: int = 30
    job_acct_gather_params: frozenset[str] = frozenset()
    task_prolog: str = ""
    task_epilog: str = ""
    inactive_limit: int | None = 0
    wait_time: int = 0
    kill_on_bad_exit: bool = False


class BankLink(msgspec.Struct, frozen=True, kw_only=True):
    """Way to the bank: socket of the agent, empty for no bank; `holds_without_agent`: without an
    answer jobs wait, else they run. `server` is the bank's socket; empty: the settings alone have
    accounts and users.
    """

    socket: str = ""
    server: str = ""
    holds_without_agent: bool = False


class WlmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of the workload manager.

    `operators` are users who may change what belongs to others, beside root and the user of the
    daemons. `zone` is the time zone of the host, in which usage is reset.
    """

    operators: frozenset[str] = frozenset()
    cluster: DaemonSettings = DaemonSettings()
    scheduling: SchedulingSettings = SchedulingSettings()
    priority: PrioritySettings = PrioritySettings()
    accounting: AccountingSettings = AccountingSettings()
    jobs: JobSettings = JobSettings()
    bank: BankLink = BankLink()
    nodes: tuple[Node, ...] = ()
    partitions: tuple[PartitionRules, ...] = ()
    zone: tzinfo = UTC

    def placed_request(self, wanted: ResourceRequest) -> ResourceRequest:
        """Return the request as a placement has to fulfil it, by SelectType and its parameters."""
        if not self.scheduling.counts_memory:  # 1 MiB is always free
            wanted = wanted.with_memory(per_node=1)
        if self.scheduling.whole_nodes:
            wanted = msgspec.structs.replace(wanted, exclusive=True, shared=False)
        return wanted

    def run_seconds(self, limit: int | None) -> int | None:
        """Return after how many seconds a run with a time limit is ended; None: never."""
        over = self.jobs.over_time_limit
        return None if limit is None or over is None else limit + over
