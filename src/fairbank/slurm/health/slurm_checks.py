"""Checks of a Slurm next to the bank, each with its remedy, from the output of its commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core.health import HealthCheck
from fairbank.core.time import iso
from fairbank.core.tres import BillingRule, parse_weights
from fairbank.slurm.parsers.config import slurm_uid, split_list, split_parameters
from fairbank.slurm.parsers.values import SlurmPartition
from fairbank.slurm.reconcile.node_sizes import node_differences, size_differences
from fairbank.slurm.reconcile.prices import SlurmMachine, price_differences

CLOCK_SECONDS = 5
"""Tolerated difference of clocks. MUNGE fails at 300 s; times in the ledger become wrong long
before.
"""

SOCKET, PLUGIN_TIMEOUT_SECONDS = "/run/fairbank-agent/prep.sock", 30.0
"""Defaults of the PrEp plug-in (plugins/prep/README.md)."""

_WITHOUT_AGENT, _WITH_AGENT = "prolog_slurmctld", "prolog_with_agent"
_PROLOG_SCRIPTS = (_WITHOUT_AGENT, _WITH_AGENT)

INCIDENT_SECONDS = 86_400
"""Age up to which an agent's incident is shown: a day, since the doctor may run every morning."""
EMBEDDED = "FairbankRelease"
"""Setting that only the embedded workload manager shows."""


class AgentHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Agent by its settings and its status.

    `patience` is the longest of its partitions, in seconds.
    """

    socket: str
    slurm_users: frozenset[int]
    patience: float
    status: Mapping[str, Any]


class PolicyFileHealth(msgspec.Struct, frozen=True, kw_only=True):
    """File of the submission policy, `written` when the bank was asked.

    `is_readable`: by the user of slurmctld.
    """

    path: str
    written: int
    is_whole: bool
    is_readable: bool
    stale_seconds: int


ENFORCING_ACCOUNTS = frozenset({"all", "associations", "limits", "qos", "safe", "wckeys"})
"""Words of AccountingStorageEnforce with which a job's account must exist."""

_MISSING_COLUMNS = "mysql_query failed: 5027 "
_STARTED = " started\n"

Config = Mapping[str, str]


def clock_check(here: int, there: int, whose: str) -> HealthCheck:
    """Compare two clocks that were read at the same time.

    Args:
        here: clock of this host, in seconds since 1970.
        there: the other clock.
        whose: name of the other clock.
    """
    apart = abs(here - there)
    good = apart <= CLOCK_SECONDS
    direction = "" if good else ", ahead of ours" if there > here else ", behind ours"
    remedy = (
        "keep the clocks of all hosts right with chrony or ntpd: the ledger's times come from them,"
        " and MUNGE refuses what is too old"
    )
    text = f"the clock of {whose} is {apart} s from this host's{direction}"
    return HealthCheck(text, good, remedy)


def accounting_checks(config: Config, machine: SlurmMachine) -> Iterator[HealthCheck]:
    """Check that slurmdbd keeps accounting, that jobs have accounts it knows, and GPUs count."""
    kind = config.get("AccountingStorageType", "")
    yield HealthCheck(
        f"accounting is stored by {kind.removeprefix('accounting_storage/') or 'nobody'}",
        kind == "accounting_storage/slurmdbd",
        "AccountingStorageType=accounting_storage/slurmdbd; fairbank reconcile compares the ledger"
        " with it",
    )
    enforced = config.get("AccountingStorageEnforce", "") or "none"
    # Otherwise an account may be any text, also one that imitates lines of accounting.
    yield HealthCheck(
        f"accounts of jobs must exist: AccountingStorageEnforce={enforced}",
        not ENFORCING_ACCOUNTS.isdisjoint(split_list(enforced.lower())),
        "AccountingStorageEnforce=associations (or limits) in slurm.conf, then restart slurmctld:"
        " without it users may name any account",
    )
    if any(node.gpus for node in machine.nodes):
        counted = "gres/gpu" in config.get("AccountingStorageTRES", "").split(",")
        remedy = "AccountingStorageTRES=gres/gpu in slurm.conf, then restart slurmctld"
        yield HealthCheck(f"GPUs in accounting: {'yes' if counted else 'no'}", counted, remedy)


def slurmdbd_remedy(log: str) -> str | None:
    """Return the remedy for a slurmdbd that does not answer, if the end of its log names one."""
    if _MISSING_COLUMNS not in log.rpartition(_STARTED)[2]:
        return None
    return (
        "start it once more: systemctl start slurmdbd. With libmariadb3 11.8.9 the start that"
        " creates the database ends with error 5027, and the next one works"
    )


def authentication_check(config: Config) -> HealthCheck:
    """Check how Slurm's daemons authenticate each other."""
    kind = config.get("AuthType", "")
    good = kind in ("auth/munge", "auth/slurm")
    remedy = "AuthType=auth/munge in slurm.conf"
    return HealthCheck(f"Slurm signs by {kind or 'nothing'}", good, remedy)


def price_checks(machine: SlurmMachine, known: Cluster) -> Iterator[HealthCheck]:
    """Check that the bank prices as Slurm bills: the rule for TRES, the weights, the QOS."""
    differences = price_differences(machine, known)
    remedy = (
        f"fairbank slurm import --dry-run --settings {quote(f'{machine.cluster}.toml')} prints the"
        " bank's settings as Slurm has them; restart the bank"
    )
    for difference in differences:
        yield HealthCheck(difference, False, remedy)
    if not differences:
        text = f"the bank prices {len(machine.partitions)} partitions as Slurm bills them"
        yield HealthCheck(f"{text} ({machine.billing_rule.value})", True)


def size_checks(machine: SlurmMachine, known: Cluster) -> Iterator[HealthCheck]:
    """Check the node sizes and default memory of the bank's settings, which quotes need.

    Nodes of a partition may differ; then the largest counts, and the check says how they differ.
    """
    remedy = (
        f"quotes of --exclusive, of --mem=0 and without --mem need it: fairbank slurm import"
        f" --dry-run --settings {quote(f'{machine.cluster}.toml')} prints it; restart the bank"
    )
    for difference in size_differences(machine, known):
        yield HealthCheck(difference, False, remedy)
    for partition in machine.partitions:
        if differences := node_differences(machine, partition.name):
            text = f"partition {partition.name}: its nodes differ: {differences}"
            yield HealthCheck(f"{text}; quotes of whole nodes count the largest", True)


def default_partition_checks(known: Cluster, *, required: bool) -> Iterator[HealthCheck]:
    """Check that quotes take no default partition where the policy refuses jobs without one."""
    if required and known.default_partition is not None:
        text = f"quotes take the default partition {known.default_partition} of the bank's settings"
        yield HealthCheck(
            f"{text}, but jobs without --partition are refused (require_partition)",
            False,
            f"remove clusters.{known.name}.default_partition, and restart the bank",
        )


def billing_weights(machine: SlurmMachine, known: Cluster | None) -> Iterator[HealthCheck]:
    """Check how TRES are added, and that GPUs have a weight.

    A rule other than MAX_TRES is accepted only if the bank has it too.
    """
    is_intended = known is not None and all(
        partition.billing_rule is machine.billing_rule for partition in known.partitions.values()
    )
    maximum = machine.billing_rule is not BillingRule.SUM
    text = "no MAX_TRES, a GPU and its cores cost both"
    if maximum:
        text = "MAX_TRES, the dearest of a job's TRES counts"
    remedy = (
        'PriorityFlags=MAX_TRES in slurm.conf; or, if it is meant so, adding = "sum" in the bank'
    )
    yield HealthCheck(f"PriorityFlags: {text}", maximum or is_intended, remedy)
    for partition in machine.partitions:
        weights = parse_weights(partition.weights) if partition.weights else {}
        is_weighed = any(name.startswith("gres/gpu") for name in weights)
        if machine.has_gpus(partition) and not is_weighed:
            remedy = (
                f"PartitionName={partition.name} ..."
                ' TRESBillingWeights="CPU=...,Mem=...,GRES/gpu=..." in slurm.conf, and the same in'
                " the bank"
            )
            text = f"partition {partition.name} has GPUs, and they cost nothing"
            yield HealthCheck(text, False, remedy)


def limit_checks(places: Sequence[SlurmPartition]) -> Iterator[HealthCheck]:
    """Check that partitions have a finite time limit.

    A job without one has no maximum price: it is refused, or runs without a hold if the agent is so
    set.
    """
    unlimited = [partition.name for partition in places if not partition.max_minutes]
    for name in unlimited:
        remedy = (
            f"PartitionName={name} ... MaxTime=7-00:00:00 DefaultTime=01:00:00 in slurm.conf, then"
            " scontrol reconfigure"
        )
        text = f"partition {name} has no finite MaxTime: jobs without a limit are refused"
        yield HealthCheck(f"{text}, or run without a hold", False, remedy)
    if not unlimited:
        yield HealthCheck("every partition has a finite time limit", True)


def plugin_checks(config: Config, agent: AgentHealth | None) -> Iterator[HealthCheck]:
    """Check that Slurm loads the plug-ins, and that they fit the agent."""
    plugins = split_list(config.get("PrEpPlugins", ""))
    if "prep/fairbank" in plugins:
        yield HealthCheck("slurmctld loads prep/fairbank", True)
        if agent is None or not agent.status["plugins"]:
            yield _lost_ends(config)
        yield from _parameters(config, agent)
    elif script := prolog_script(config):
        text = f"slurmctld asks the bank by a script, without a plug-in: {script}"
        yield HealthCheck(text, True)
    else:
        yield HealthCheck(
            "slurmctld does not ask before a job starts:"
            f" PrEpPlugins={','.join(plugins) or '(none)'}",
            False,
            "PrEpPlugins=prep/fairbank,prep/script in slurm.conf and restart slurmctld;"
            " leave it so while the bank only watches",
        )
    for key, program in (
        ("JobSubmitPlugins", "slurmctld"),
        ("CliFilterPlugins", "submit commands"),
    ):
        text = f"{program}: {key}={config.get(key, '') or '(none)'}"
        yield HealthCheck(
            text, has_lua(config, key), f"{key}=lua in slurm.conf, with our files next to it"
        )


def _lost_ends(config: Config) -> HealthCheck:
    """Say what the plug-in cannot hand over without an agent."""
    age = config.get("MinJobAge", "300").partition(" ")[0]
    text = (
        "ends of jobs wait in slurmctld's memory for the agent: if slurmctld is restarted before"
        f" the agent connects, those of jobs that ended more than {age} s (MinJobAge) before are"
        " lost"
    )
    remedy = (
        "start the agent; if slurmctld was restarted meanwhile, charge them from accounting:"
        " fairbank reconcile --fix"
    )
    return HealthCheck(text, False, remedy)


def _parameters(config: Config, agent: AgentHealth | None) -> Iterator[HealthCheck]:
    if agent is None:
        return
    settings = split_parameters(config.get("PrEpParameters", ""))
    socket = settings.get("fairbank_socket", SOCKET)
    patience = settings.get("fairbank_patience", "")
    seconds = (
        float(patience) if patience.isascii() and patience.isdigit() else PLUGIN_TIMEOUT_SECONDS
    )
    yield HealthCheck(
        f"socket of the agent: {agent.socket}; of the plug-in: {socket}",
        socket == agent.socket,
        f"the agent listens at {agent.socket}: PrEpParameters=fairbank_socket={agent.socket}, or"
        " plugin.socket in its settings",
    )
    yield HealthCheck(
        f"the plug-in waits {seconds:g} s for the agent, the agent {agent.patience:g} s for the"
        " bank",
        agent.patience < seconds,
        "make the agent's patience less, or the plug-in's more:"
        f" PrEpParameters=...,fairbank_patience={agent.patience + 5:.0f}",
    )


def agent_checks(config: Config, agent: AgentHealth, now: int) -> Iterator[HealthCheck]:
    """Check the agent's connections to slurmctld and the bank, its outbox and its incidents.

    Args:
        config: settings of Slurm.
        agent: settings and status of the agent.
        now: current time.
    """
    status = agent.status
    bank, outbox = status["bank"], status["outbox"]
    user = slurm_uid(config)
    if user is not None:
        remedy = f"plugin.slurm_user = {user} in the agent's settings"
        users = ", ".join(map(str, sorted(agent.slurm_users)))
        text = f"the agent accepts the users {users}; SlurmUser is {config.get('SlurmUser', '')}"
        yield HealthCheck(text, user in agent.slurm_users, remedy)
    cluster = config.get("ClusterName")
    connected = [plugin["slurm"] for plugin in status["plugins"] if plugin["cluster"] == cluster]
    by_script = bool(prolog_script(config))  # it connects when a job starts
    if not by_script:
        yield HealthCheck(
            f"slurmctld is connected to the agent: {', '.join(connected) or 'no'}",
            bool(connected),
            "restart slurmctld once its plug-in is installed (a reconfiguration does not load it),"
            " and look for Fairbank in its log",
        )
    if not by_script or bank["reachable"] is not None:
        yield _bank_check(bank)
    for denied in status.get("denied", ()):
        text = f"{denied['reports']} reports of cluster {denied['cluster']}: {denied['error']}"
        yield HealthCheck(f"the agent has set aside {text}", False, denied["remedy"])
    error = outbox["error"]
    text = f"cannot be written: {error}" if error else f"{outbox['reports']} reports wait"
    remedy = "free space on its disk; the agent continues by itself"
    yield HealthCheck(f"the agent's outbox: {text}", not error, remedy)
    if later := outbox.get("retry_later"):
        text = f"the agent's ends: {later} are too early for the bank's clock, and sent again later"
        remedy = "set the clocks of both hosts alike (chronyc tracking)"
        yield HealthCheck(text, False, f"{remedy}; the agent repeats them by itself")
    yield _frame_check(status.get("quarantine"))
    for incident in status.get("incidents", ()):
        if now - incident["last"] < INCIDENT_SECONDS:
            times = f"since {iso(incident['since'])}, the last at {iso(incident['last'])}"
            text = f"{incident['about']}: {incident['count']} {times}: {incident['text']}"
            yield HealthCheck(f"the agent reports {text}", False, incident["remedy"])


def _bank_check(bank: Mapping[str, Any]) -> HealthCheck:
    if bank["reachable"] is None:
        remedy = (
            "it asks when slurmctld's plug-in has named the cluster: check that it is connected"
        )
        return HealthCheck("the agent's connection to the bank: not tried yet", False, remedy)
    cause = "" if bank["reachable"] else f": {bank['error']}"
    remedy = bank["remedy"] or "bank.server in the agent's settings; fairbank status there"
    return HealthCheck(f"the agent's connection to the bank{cause}", bank["reachable"], remedy)


def _frame_check(quarantine: Mapping[str, Any] | None) -> HealthCheck:
    if quarantine is None:
        remedy = "restart it: systemctl restart fairbank-agent"
        return HealthCheck("the agent is older than this command", False, remedy)
    frames = quarantine["frames"]
    text = f"messages of slurmctld's plug-in that the agent cannot read: {frames}"
    if frames:
        text += f", the last: {quarantine['last']}; they are in {quarantine['path']}"
    return HealthCheck(text, not frames, quarantine["remedy"])


def policy_checks(policy: PolicyFileHealth, now: int) -> Iterator[HealthCheck]:
    """Check that the submission policy is complete, readable and recent."""
    remedy = (
        "fairbank slurm sync; and let it run every few minutes: systemctl enable --now"
        " fairbank-sync.timer"
    )
    state = "whole" if policy.is_whole else "damaged: jobs are not checked"
    yield HealthCheck(f"{policy.path} is {state}", policy.is_whole, remedy)
    fresh = now - policy.written <= policy.stale_seconds
    old = "" if fresh else f", more than {policy.stale_seconds} s ago: its balances are not used"
    yield HealthCheck(f"{policy.path} is of {iso(policy.written)}{old}", fresh, remedy)
    if not policy.is_readable:
        remedy = f"chmod a+r {policy.path}, or write it as SlurmUser"
        yield HealthCheck(f"slurmctld's user may not read {policy.path}", False, remedy)


def prolog_script(config: Config) -> str:
    """Return the path of Fairbank's PrologSlurmctld that replaces the plug-in, or "".

    Newer versions run several scripts and number them: PrologSlurmctld[0].
    """
    if "prep/fairbank" in split_list(config.get("PrEpPlugins", "")):
        return ""
    scripts = (text for name, text in config.items() if name.partition("[")[0] == "PrologSlurmctld")
    return next((text for text in scripts if text.rpartition("/")[2] in _PROLOG_SCRIPTS), "")


def is_embedded(config: Config) -> bool:
    """Return True for the settings of the embedded workload manager, which needs no plug-ins."""
    return EMBEDDED in config


def needs_agent(config: Config) -> bool:
    """Return True unless a script asks the bank itself."""
    return not prolog_script(config).endswith(f"/{_WITHOUT_AGENT}")


def has_lua(config: Config, key: str) -> bool:
    """Return True if the setting names Slurm's Lua plug-in."""
    return "lua" in split_list(config.get(key, ""))
