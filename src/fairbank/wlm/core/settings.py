"""Settings of the core that do not change while it runs, with Slurm's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo

import msgspec

from fairbank.cluster.license import License
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.tres import BillingRule
from fairbank.priority.associations import AssociationKey
from fairbank.priority.fairshare.tree import ShareAssociation
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.usage import LimitRecord, QosLimits
from fairbank.priority.settings import PrioritySettings
from fairbank.scheduling.machines.nodes import Preemption
from fairbank.scheduling.slurm.parameters import SchedulerParameters


class CoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the state machine. Times are in seconds.

    cluster               name of the cluster, part of the identity of each run
    operators             users beside root who may change every job and the cluster
    private_data          PrivateData: kinds of rows of which users see their own only
    has_bank              each run needs a verdict of the agent
    first_id, last_id     FirstJobId, MaxJobId
    max_jobs, max_array   MaxJobCount, MaxArraySize
    over_time_limit       OverTimeLimit; None: no run is ended at its limit
    complete_wait         CompleteWait: no job starts while another one has been completing for less
    min_job_age           MinJobAge
    max_batch_requeue     MaxBatchRequeue
    requeue_wait          cred_expire of AuthInfo: how long a requeued job waits
    requeue_exit, _hold   RequeueExit, RequeueExitHold
    holds_after_prolog    a job whose prolog failed is held (not nohold_on_prolog_fail)
    return_to_service     ReturnToService
    batch_start_timeout   BatchStartTimeout
    kill_invalid          kill_invalid_depend
    counts_memory         SelectTypeParameters has _Memory; else memory limits no start
    actual_resources      nodes have what they register, if it is more than is configured
    whole_nodes           SelectType=select/linear: every job gets whole nodes
    preemption            PreemptType and PreemptMode
    enforced              AccountingStorageEnforce
    associations          accounts and users with their limits; empty: any account will do
    has_bank_accounts     accounts and users are those of the bank, once they are known
    part_limits           EnforcePartLimits: NO, ANY or ALL
    qos_flags             flags of QOS, in Slurm's words
    allowed_qos           QOS that the jobs of associations may have, the default first; others: any
    needs_qos             a job with another QOS is refused
    parameters            SchedulerParameters
    priority              priority/multifactor with its settings; None: priority/basic
    shares                associations with their shares; all others have one share
    zone                  time zone of the resets of usage
    """

    cluster: str
    operators: frozenset[str] = frozenset()
    private_data: frozenset[str] = frozenset()
    has_bank: bool = False
    first_id: int = 1
    last_id: int = 67_043_328
    max_jobs: int = 10_000
    max_array: int = 1_001
    over_time_limit: int | None = 0
    complete_wait: int = 0
    min_job_age: int = 300
    max_batch_requeue: int = 5
    requeue_wait: int = 120
    requeue_exit: frozenset[int] = frozenset()
    requeue_exit_hold: frozenset[int] = frozenset()
    holds_after_prolog: bool = True
    return_to_service: int = 0
    batch_start_timeout: int = 10
    kill_invalid: bool = False
    counts_memory: bool = True
    actual_resources: bool = False
    whole_nodes: bool = False
    preemption: Preemption = Preemption()
    enforced: Enforced = Enforced(limits=False)
    associations: Mapping[AssociationKey, LimitRecord] = {}
    has_bank_accounts: bool = False
    qos: Mapping[str, QosLimits] = {}
    billing_rule: BillingRule = BillingRule.SUM
    licenses: Mapping[str, License] = {}
    part_limits: str = "NO"
    qos_flags: Mapping[str, frozenset[str]] = {}
    allowed_qos: Mapping[AssociationKey, tuple[str, ...]] = {}
    needs_qos: bool = True
    parameters: SchedulerParameters = SchedulerParameters()
    priority: PrioritySettings | None = None
    shares: tuple[ShareAssociation, ...] = ()
    zone: tzinfo = UTC

    def placed_request(self, wanted: ResourceRequest) -> ResourceRequest:
        """Return the request as a placement has to fulfil it, by SelectType and its parameters."""
        if not self.counts_memory:  # 1 MiB is always free
            wanted = msgspec.structs.replace(wanted, memory_per_node=1, memory_per_cpu=None)
        if self.whole_nodes:
            wanted = msgspec.structs.replace(wanted, exclusive=True, shared=False)
        return wanted

    def run_seconds(self, limit: int | None) -> int | None:
        """Return after how many seconds a run with a time limit is ended; None: never."""
        if limit is None or self.over_time_limit is None:
            return None
        return limit + self.over_time_limit
