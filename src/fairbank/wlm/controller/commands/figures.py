"""Settings and figures of the controller as scontrol show config and sdiag show them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairbank import __version__
from fairbank.core.slurm_numbers import RELEASE, STATIC_TRES
from fairbank.core.time import show_duration
from fairbank.core.tres import BillingRule
from fairbank.priority.settings import Algorithm, PrioritySettings
from fairbank.report.slurm.notation import NULL, UNLIMITED
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.wlm.config.keyword import CLUSTER, JOBS, KeywordEffect
from fairbank.wlm.config.keywords import SETTINGS
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.planner import PassStatistics
from fairbank.wlm.controller.totals import RequestTotal
from fairbank.wlm.core.settings import AccountingSettings, SchedulingSettings, WlmSettings

Lines = Iterator[tuple[str, str]]


def setting_lines(settings: WlmSettings, host: str, owner: str) -> list[tuple[str, str]]:
    """Return names and values of the settings, in Slurm's order.

    Args:
        host: name of the controller's host.
        owner: user of the controller with uid, such as `root(0)`.
    """
    over, hosts = settings.jobs.over_time_limit, settings.cluster.slurmctld_host
    lines = {
        **dict(_plain_lines(settings)),
        **dict(_scheduling_lines(settings.scheduling)),
        **dict(_priority_lines(settings.priority, settings.accounting.billing_rule)),
        **dict(_accounting_lines(settings.accounting)),
        "AuthType": "auth/none",  # the kernel names the user of a socket
        "FairbankRelease": __version__,  # Slurm has no such setting
        "OverTimeLimit": UNLIMITED if over is None else f"{over // 60} min",
        "PrivateData": _words(settings.cluster.private_data, "none"),
        "SlurmctldHost[0]": next(iter(hosts), host),
        "SlurmctldTimeout": "120 sec",  # Slurm's default: it has no effect without a backup
        "SlurmUser": owner,
        "SLURM_VERSION": RELEASE,
    }
    return sorted(lines.items(), key=lambda line: line[0].lower())


def _plain_lines(settings: WlmSettings) -> Lines:
    """Yield the keywords of the daemons and of jobs that have a field of their own."""
    for keyword in SETTINGS:
        is_shown = keyword.is_in_slurm_conf and keyword.effect is KeywordEffect.YES
        if not is_shown or keyword.fields or keyword.group not in (CLUSTER, JOBS):
            continue
        value = getattr(getattr(settings, keyword.group), keyword.key)
        has_seconds = keyword.form is not None and "of seconds" in keyword.form.words
        match value:
            case None:
                yield keyword.name, UNLIMITED
            case int():
                yield keyword.name, f"{int(value)} sec" if has_seconds else str(int(value))
            case str():
                yield keyword.name, value or NULL
            case _ if keyword.name != "SlurmctldHost":
                yield keyword.name, _words(map(str, value), NULL)


def _scheduling_lines(scheduling: SchedulingSettings) -> Lines:
    unit = "CR_CORE" if scheduling.by_core else "CR_CPU"
    for name, per_cpu, per_node in (
        ("DefMem", scheduling.memory_per_cpu, scheduling.memory_per_node),
        ("MaxMem", scheduling.max_memory_per_cpu, scheduling.max_memory_per_node),
    ):
        if per_cpu is not None:
            yield f"{name}PerCPU", str(per_cpu)
        else:
            yield f"{name}PerNode", UNLIMITED if per_node is None else str(per_node)
    yield "EnforcePartLimits", scheduling.part_limits
    yield (
        "Licenses",
        _words((f"{name}:{count}" for name, count in scheduling.licenses.items()), NULL),
    )
    yield "PreemptMode", scheduling.preemption.mode.value
    yield "PreemptType", scheduling.preemption.by.value
    yield "SchedulerParameters", _parameters(scheduling.parameters)
    yield "SchedulerType", f"sched/{'backfill' if scheduling.backfill else 'builtin'}"
    yield "SelectType", f"select/{'linear' if scheduling.whole_nodes else 'cons_tres'}"
    yield "SelectTypeParameters", f"{unit}_MEMORY" if scheduling.counts_memory else unit
    yield "TaskPlugin", f"task/{'affinity' if scheduling.affinity else 'none'}"


def _parameters(parameters: SchedulerParameters) -> str:
    """Return the parameters that are not the default."""
    default, words = SchedulerParameters(), list[str]()
    for name in SchedulerParameters.__struct_fields__:
        value = getattr(parameters, name)
        if value != getattr(default, name):
            words.append(name if value is True else f"{name}={value}")
    return _words(words, NULL)


def _priority_lines(priority: PrioritySettings, billing: BillingRule) -> Lines:
    factors, share = priority.factors, priority.fair_share
    weights = factors.weights
    flags = [flag.value for flag in factors.flags]
    flags += ["NO_FAIR_TREE"] if share.algorithm is Algorithm.CLASSIC else []
    flags += [] if billing is BillingRule.SUM else [billing.name]
    yield "FairShareDampeningFactor", str(share.dampening)
    yield "PriorityCalcPeriod", show_duration(share.tick_seconds)
    yield "PriorityDecayHalfLife", show_duration(share.half_life_seconds)
    yield "PriorityFavorSmall", _yes(factors.favour_small)
    yield "PriorityFlags", _words(flags, "")
    yield "PriorityMaxAge", show_duration(factors.max_age_seconds)
    yield "PriorityType", f"priority/{'multifactor' if priority.by_factors else 'basic'}"
    yield "PriorityUsageResetPeriod", share.reset.value
    yield "PriorityWeightAge", str(weights.age)
    yield "PriorityWeightAssoc", str(weights.association)
    yield "PriorityWeightFairShare", str(weights.fairshare)
    yield "PriorityWeightJobSize", str(weights.job_size)
    yield "PriorityWeightPartition", str(weights.partition)
    yield "PriorityWeightQOS", str(weights.qos)
    tres = (f"{name}={weight:.15g}" for name, weight in weights.tres.items())
    yield "PriorityWeightTRES", ",".join(tres) or NULL


def _accounting_lines(accounting: AccountingSettings) -> Lines:
    enforced = {
        "associations": accounting.needs_association,
        "limits": accounting.enforced.limits,
        "qos": accounting.needs_qos,
        "safe": accounting.enforced.safe,
    }
    yield (
        "AccountingStorageEnforce",
        _words((word for word, is_set in enforced.items() if is_set), "none"),
    )
    yield "AccountingStorageTRES", ",".join(dict.fromkeys([*STATIC_TRES, *accounting.tres]))
    # Priorities count age and fair share only beside slurmdbd, whose part the controller has.
    yield "AccountingStorageType", "accounting_storage/slurmdbd"


def _yes(is_set: bool) -> str:
    return "Yes" if is_set else "No"


def _words(words: Iterable[str], without: str) -> str:
    return ",".join(sorted(words)) or without


def statistics(runner: CoreRunner, now: int) -> Mapping[str, Any]:
    """Return the figures of sdiag since the start of the controller, by their names in its JSON."""
    planner, totals, ended = runner.planner, runner.totals, runner.totals.ended
    states = Counter(job.state.base for job in runner.state.jobs.values())
    return {
        "req_time": now,
        "req_time_start": int(runner.started),
        "dbd_agent_queue_size": len(runner.state.messages),
        "jobs_submitted": totals.submitted,
        "jobs_started": totals.started,
        "jobs_completed": ended["COMPLETED"],
        "jobs_canceled": ended["CANCELLED"],
        "jobs_failed": sum(ended[state] for state in _FAILED),
        "job_states_ts": now,
        "jobs_pending": states["PENDING"],
        "jobs_running": states["RUNNING"],
        "schedule_cycle_per_minute": planner.main.count * 60 // max(runner.up_seconds, 60),
        "schedule_queue_length": planner.main.depth,
        # They are never reset, so both are since the start of the controller.
        "bf_backfilled_jobs": runner.state.backfilled,
        "bf_last_backfilled_jobs": runner.state.backfilled,
        "bf_when_last_cycle": planner.backfill.at,
        "bf_last_depth": planner.backfill.depth,
        "bf_queue_len": planner.backfill.depth,
        "bf_queue_len_mean": _mean(planner.backfill.tested, planner.backfill),
        "schedule_cycle_mean_depth": _mean(planner.main.tested, planner.main),
        "bf_depth_mean": _mean(planner.backfill.tested, planner.backfill),
        **_passes("schedule_cycle", planner.main),
        **_passes("bf_cycle", planner.backfill),
        "rpcs_by_message_type": [
            {"message_type": name, "type_id": number, **_requests(total)}
            for (name, number), total in totals.by_message.items()
        ],
        "rpcs_by_user": [
            {"user": name, "user_id": uid, **_requests(total)}
            for (name, uid), total in totals.by_user.items()
        ],
    }


_FAILED = ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "DEADLINE")


def _passes(name: str, passes: PassStatistics) -> Mapping[str, int]:
    return {
        f"{name}_counter": passes.count,
        f"{name}_last": passes.last,
        f"{name}_max": passes.most,
        f"{name}_mean": _mean(passes.total, passes),
    }


def _requests(total: RequestTotal) -> Mapping[str, int]:
    return {
        "count": total.count,
        "average_time": total.microseconds // total.count,
        "total_time": total.microseconds,
    }


def _mean(total: int, passes: PassStatistics) -> int:
    return total // max(passes.count, 1)
