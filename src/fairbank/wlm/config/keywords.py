"""Keywords of groups that are there once. Source: slurm.conf(5)."""

from __future__ import annotations

from fairbank.core.ids import JOB_ID_MAX
from fairbank.core.slurm_numbers import DEBUG_FORM, TASKS_MAX, parse_debug_level
from fairbank.core.submission.values import resource_limits
from fairbank.priority.settings import DAMPENING_MAX, WORDS
from fairbank.scheduling.machines.nodes import PreemptBy
from fairbank.wlm.config import cluster_forms as c
from fairbank.wlm.config import forms as f
from fairbank.wlm.config.keyword import (
    BANK,
    CLUSTER,
    JOBS,
    MACHINES,
    PRIORITY,
    SCHEDULING,
    TOP,
    Keyword,
    KeywordEffect,
    later,
    no_gpu_memory,
    refused,
    without_effect,
)

_BACKUP, _STEPS = "backup controllers are", "this part of job steps is"
_NO_PORT = "the daemons listen at sockets in the directory of the cluster"

_LEVEL = f.ValueForm(DEBUG_FORM, parse_debug_level)
_RESOURCE_LIMITS = f.ValueForm("ALL, NONE, or limits such as STACK,NOFILE", resource_limits)
_SELECT = f.one_of(
    "CR_Core_Memory CR_Core CR_CPU_Memory CR_CPU",
    "CR_Socket CR_Socket_Memory",
    "jobs get cores, not sockets",
)
_BACKFILL = f.mapped(f.one_of("sched/backfill sched/builtin"), "sched/backfill".__eq__)
_LINEAR = f.mapped(f.one_of("select/cons_tres select/linear"), "select/linear".__eq__)
_CORES = f.mapped(_SELECT, lambda word: ("Core" in word, "Memory" in word))
_PREEMPT_BY = f.mapped(f.one_of(" ".join(kind.value for kind in PreemptBy)), PreemptBy)
_PART_LIMITS = f.mapped(f.one_of("NO ANY ALL YES"), lambda word: word.replace("YES", "ALL"))
_AFFINITY = f.mapped(f.one_of("task/none task/affinity"), "task/affinity".__eq__)
_ACTUAL = f.mapped(f.one_of("configured actual"), "actual".__eq__)
_FACTORS = f.mapped(f.one_of("priority/multifactor priority/basic"), "priority/multifactor".__eq__)
_MEMORY = "scheduling.memory_per_cpu scheduling.memory_per_node"
_DAMPENING = f.whole(1, DAMPENING_MAX)

_CLUSTER = (
    Keyword("ClusterName", CLUSTER, c.CLUSTER),
    Keyword("SlurmctldHost", CLUSTER, c.HOSTS, repeats=True),
    Keyword("ControlMachine", CLUSTER, c.HOSTS, "cluster.slurmctld_host"),
    later("BackupController", CLUSTER, c.HOSTS, _BACKUP),
    Keyword("SlurmctldPort", CLUSTER, f.PORT, effect=KeywordEffect.NO, note=_NO_PORT),
    later("SlurmctldTimeout", CLUSTER, f.SECONDS, _BACKUP),
    Keyword("SlurmctldDebug", CLUSTER, _LEVEL),
    Keyword("SlurmctldSyslogDebug", CLUSTER, _LEVEL),
    Keyword("SlurmctldLogFile", CLUSTER, f.PATH),
    Keyword("SlurmdPort", CLUSTER, f.PORT, effect=KeywordEffect.NO, note=_NO_PORT),
    Keyword("SlurmdTimeout", CLUSTER, f.SECONDS),
    Keyword("SlurmdDebug", CLUSTER, _LEVEL),
    Keyword("SlurmdSyslogDebug", CLUSTER, _LEVEL),
    Keyword("SlurmdLogFile", CLUSTER, f.PATH),
    Keyword(
        "SlurmdSpoolDir",
        CLUSTER,
        f.PATH,
        effect=KeywordEffect.NO,
        note="the spool is in the directory of the cluster",
    ),
    Keyword("StateSaveLocation", CLUSTER, f.PATH),
    Keyword(
        "SlurmUser",
        CLUSTER,
        f.NAME,
        effect=KeywordEffect.NO,
        note="the daemons belong to the user who starts them",
    ),
    Keyword(
        "PrivateData",
        CLUSTER,
        f.list_of("accounts events jobs nodes partitions reservations usage users"),
        note="no command shows events",
    ),
    Keyword("MinJobAge", CLUSTER, f.SECONDS),
    Keyword("MaxJobCount", CLUSTER, f.whole(1, 1_000_000)),
    Keyword("MaxArraySize", CLUSTER, f.whole(0, TASKS_MAX + 1)),
    Keyword("FirstJobId", CLUSTER, f.whole(1, JOB_ID_MAX)),
    Keyword("MaxJobId", CLUSTER, f.whole(1, JOB_ID_MAX)),
    Keyword("ReturnToService", CLUSTER, f.whole(0, 2)),
    Keyword("MessageTimeout", CLUSTER, f.whole(1, 100, "seconds")),
    Keyword("metrics_port", CLUSTER, f.PORT),
    Keyword("gpu_root", CLUSTER, f.PATH),
    later("MailProg", CLUSTER, f.PATH, "mails are"),
    later("AuthType", CLUSTER, f.one_of("auth/munge auth/slurm auth/none"), MACHINES),
    later("TreeWidth", CLUSTER, f.whole(1, f.SHORT_MAX), MACHINES),
    Keyword("MpiDefault", CLUSTER, f.one_of("none"), effect=KeywordEffect.NO),
    Keyword("GresTypes", CLUSTER, f.one_of("gpu"), effect=KeywordEffect.NO),
    *without_effect(
        CLUSTER,
        "AccountingStorage* JobComp* Crypto* Cred* SwitchType ProctrackType SlurmctldPidFile"
        " SlurmdPidFile GroupUpdate* LaunchParameters DebugFlags HealthCheck*",
    ),
    *refused(CLUSTER, "Federation*", "there is one cluster"),
    *refused(
        CLUSTER,
        "PluginDir CliFilterPlugins JobSubmitPlugins PrEpPlugins",
        "Slurm's plug-ins are not loaded",
    ),
    *refused(CLUSTER, "BurstBufferType", "burst buffers are not built"),
    *refused(CLUSTER, "Suspend* Resume*", "power saving is not built"),
    *refused(CLUSTER, "Topology*", "topologies are not built"),
    *refused(CLUSTER, "UsePAM", "every start of a job needs the word of the kernel"),
)

_SCHEDULING = (
    Keyword("SchedulerType", SCHEDULING, _BACKFILL, "scheduling.backfill"),
    Keyword(
        "SchedulerParameters",
        SCHEDULING,
        c.PARAMETERS,
        "scheduling.parameters scheduling.holds_after_prolog scheduling.script_max",
    ),
    Keyword("SelectType", SCHEDULING, _LINEAR, "scheduling.whole_nodes"),
    Keyword(
        "SelectTypeParameters", SCHEDULING, _CORES, "scheduling.by_core scheduling.counts_memory"
    ),
    Keyword("PreemptType", SCHEDULING, _PREEMPT_BY, "scheduling.preemption.by"),
    Keyword("PreemptMode", SCHEDULING, c.PREEMPT_MODE, "scheduling.preemption.mode"),
    Keyword("EnforcePartLimits", SCHEDULING, _PART_LIMITS, "scheduling.part_limits"),
    Keyword("DefMemPerCPU", SCHEDULING, c.MEMORY_PER_CPU, _MEMORY),
    Keyword("DefMemPerNode", SCHEDULING, c.MEMORY_PER_NODE, _MEMORY),
    no_gpu_memory(SCHEDULING),
    Keyword("MaxMemPerCPU", SCHEDULING, f.MEMORY_LIMIT, "scheduling.max_memory_per_cpu"),
    Keyword("MaxMemPerNode", SCHEDULING, f.MEMORY_LIMIT, "scheduling.max_memory_per_node"),
    Keyword("Licenses", SCHEDULING, c.LICENSES, "scheduling.licenses"),
    Keyword("TaskPlugin", SCHEDULING, _AFFINITY, "scheduling.affinity"),
    Keyword("node_resources", SCHEDULING, _ACTUAL, "scheduling.actual_resources"),
)

_PRIORITY = (
    Keyword("PriorityType", PRIORITY, _FACTORS, "priority.by_factors"),
    *(
        Keyword(
            f"PriorityWeight{word.replace('FairShare', 'Fairshare')}",
            PRIORITY,
            f.WEIGHT,
            f"priority.factors.weights.{field}",
        )
        for field, word in WORDS.items()
    ),
    Keyword("PriorityWeightTRES", PRIORITY, c.TRES_WEIGHTS, "priority.factors.weights.tres"),
    Keyword(
        "PriorityFlags",
        PRIORITY,
        c.PRIORITY_FLAGS,
        "priority.factors.flags priority.fair_share.algorithm accounting.billing_rule",
    ),
    Keyword("PriorityMaxAge", PRIORITY, f.PERIOD, "priority.factors.max_age_seconds"),
    Keyword("PriorityFavorSmall", PRIORITY, f.YES_NO, "priority.factors.favour_small"),
    Keyword("PriorityDecayHalfLife", PRIORITY, f.PERIOD, "priority.fair_share.half_life_seconds"),
    Keyword("PriorityUsageResetPeriod", PRIORITY, c.RESET, "priority.fair_share.reset"),
    Keyword("PriorityCalcPeriod", PRIORITY, f.TIME, "priority.fair_share.tick_seconds"),
    Keyword("FairShareDampeningFactor", PRIORITY, _DAMPENING, "priority.fair_share.dampening"),
    Keyword(
        "AccountingStorageEnforce",
        PRIORITY,
        c.ENFORCED,
        "accounting.enforced accounting.needs_association accounting.needs_qos",
    ),
    Keyword("AccountingStorageTRES", PRIORITY, c.TRES_NAMES, "accounting.tres"),
    *without_effect(PRIORITY, "PriorityParameters"),
    Keyword(
        "PrioritySiteFactorPlugin", PRIORITY, f.one_of("site_factor/none"), effect=KeywordEffect.NO
    ),
)

_JOBS = (
    Keyword("KillWait", JOBS, f.SECONDS),
    Keyword("OverTimeLimit", JOBS, f.or_unlimited(f.whole(0, f.SHORT_MAX, "minutes", factor=60))),
    Keyword("JobRequeue", JOBS, f.ONE_ZERO),
    Keyword("MaxBatchRequeue", JOBS, f.whole(0, f.SHORT_MAX)),
    Keyword("AuthInfo", JOBS, c.AUTH_INFO, "jobs.requeue_wait"),
    Keyword("RequeueExit", JOBS, f.EXIT_CODES),
    Keyword("RequeueExitHold", JOBS, f.EXIT_CODES),
    Keyword("JobFileAppend", JOBS, f.ONE_ZERO),
    Keyword("Prolog", JOBS, f.PATH),
    Keyword("Epilog", JOBS, f.PATH),
    Keyword("PrologTimeout", JOBS, f.or_unlimited(f.SECONDS)),
    Keyword("EpilogTimeout", JOBS, f.or_unlimited(f.SECONDS)),
    Keyword("UnkillableStepTimeout", JOBS, f.SECONDS),
    Keyword("UnkillableStepProgram", JOBS, f.PATH),
    Keyword("BatchStartTimeout", JOBS, f.SECONDS),
    Keyword("CompleteWait", JOBS, f.SECONDS),
    Keyword("PropagateResourceLimits", JOBS, _RESOURCE_LIMITS),
    Keyword("PropagateResourceLimitsExcept", JOBS, _RESOURCE_LIMITS),
    Keyword("JobAcctGatherFrequency", JOBS, f.TASK_PERIOD),
    Keyword("JobAcctGatherParams", JOBS, f.list_of("OverMemoryKill")),
    Keyword("TaskProlog", JOBS, f.PATH),
    Keyword("TaskEpilog", JOBS, f.PATH),
    Keyword("InactiveLimit", JOBS, f.or_unlimited(f.SECONDS)),
    Keyword("WaitTime", JOBS, f.SECONDS),
    Keyword("KillOnBadExit", JOBS, f.ONE_ZERO),
    *without_effect(JOBS, "JobContainerType TmpFS"),
    *refused(JOBS, "PrologSlurmctld EpilogSlurmctld", "the agent has both hooks already"),
)

_ONLY_IN_TOML = (
    Keyword("slurm_conf", TOP, f.TEXT),
    Keyword("operators", TOP, f.mapped(f.NAMES, frozenset), "operators"),
    Keyword("agent", BANK, f.PATH, "bank.socket"),
    Keyword("server", BANK, f.PATH),
    Keyword(
        "without_agent",
        BANK,
        f.mapped(f.one_of("run hold"), "hold".__eq__),
        "bank.holds_without_agent",
    ),
)

SETTINGS = (*_CLUSTER, *_SCHEDULING, *_PRIORITY, *_JOBS, *_ONLY_IN_TOML)
