"""Whether a Slurm is fit for the bank beside it: what its commands say, judged, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core.check import HealthCheck
from fairbank.core.time import iso
from fairbank.core.tres import BillingRule, parse_weights
from fairbank.slurm.compare.import_plan import SlurmMachine, price_differences
from fairbank.slurm.parsers.scontrol import listed, parameters, slurm_uid
from fairbank.slurm.parsers.values import SlurmPartition

CLOCK_SECONDS = 5
"""How far clocks may lie apart before it is told. MUNGE gives up at 300; the books' times become wrong long before."""

SOCKET, PATIENCE_SECONDS = "/run/fairbank-agent/prep.sock", 30.0
"""What the PrEp plug-in takes when PrEpParameters do not say (plugins/prep/README.md)."""

INCIDENT_SECONDS = 86_400
"""How long ago what befell the agent is told: a day, for whom the doctor's exit code calls every morning."""

_GUIDE = "docs/howto/install-next-to-slurm.md"


class AgentHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The agent as its settings and its status have it: `patience` is the longest of its partitions, in seconds."""

    socket: str
    slurm_users: frozenset[int]
    patience: float
    status: Mapping[str, Any]


class PolicyFileHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The submission policy's file. `readable`: slurmctld's user may read it; `written` is when the bank was asked."""

    path: str
    written: int
    whole: bool
    readable: bool
    stale_seconds: int


Config = Mapping[str, str]


def clocks(here: int, there: int, whose: str) -> HealthCheck:
    """Two clocks read at the same moment."""
    apart = abs(here - there)
    way = "" if apart <= CLOCK_SECONDS else ", ahead of ours" if there > here else ", behind ours"
    remedy = "keep the clocks of all hosts right with chrony or ntpd: times in the books come from them, and MUNGE refuses what is too old"
    return HealthCheck(
        f"the clock of {whose} is {apart} s from this host's{way}", apart <= CLOCK_SECONDS, remedy
    )


def accounting(config: Config, machine: SlurmMachine) -> Iterator[HealthCheck]:
    """What the books are compared with: slurmdbd, and the TRES that it counts."""
    kind = config.get("AccountingStorageType", "")
    yield HealthCheck(
        f"accounting is kept by {kind.removeprefix('accounting_storage/') or 'nobody'}",
        kind == "accounting_storage/slurmdbd",
        "AccountingStorageType=accounting_storage/slurmdbd; fairbank reconcile compares the books with it",
    )
    gpus = any(node.gpus for node in machine.nodes)
    if gpus:
        counted = "gres/gpu" in config.get("AccountingStorageTRES", "").split(",")
        yield HealthCheck(
            "GPUs are counted in accounting",
            counted,
            "AccountingStorageTRES=gres/gpu in slurm.conf, then restart slurmctld",
        )


def signing(config: Config) -> HealthCheck:
    """How Slurm's own daemons know each other."""
    kind = config.get("AuthType", "")
    return HealthCheck(
        f"Slurm signs by {kind or 'nothing'}",
        kind in ("auth/munge", "auth/slurm"),
        "AuthType=auth/munge in slurm.conf",
    )


def prices(machine: SlurmMachine, known: Cluster) -> Iterator[HealthCheck]:
    """Whether the bank prices as Slurm bills: how TRES add up, the weights, the QOS."""
    differences = price_differences(machine, known)
    remedy = f"fairbank slurm import --dry-run --settings {machine.cluster}.toml prints the bank's settings as Slurm has them; restart the bank"
    for each in differences:
        yield HealthCheck(each, False, remedy)
    if not differences:
        yield HealthCheck(
            f"the bank prices {len(machine.places)} partitions as Slurm bills them ({machine.adding.value})",
            True,
        )


def weighing(machine: SlurmMachine, known: Cluster | None) -> Iterator[HealthCheck]:
    """How TRES add up, which is not by MAX_TRES only where the bank says so too; and what costs nothing because it has no weight."""
    meant = known is not None and all(
        each.billing_rule is machine.adding for each in known.partitions.values()
    )
    maximum = machine.adding is not BillingRule.SUM
    said = (
        "MAX_TRES, the dearest of a job's TRES counts"
        if maximum
        else "no MAX_TRES, a GPU and its cores cost both"
    )
    yield HealthCheck(
        f"PriorityFlags: {said}",
        maximum or meant,
        'PriorityFlags=MAX_TRES in slurm.conf; or, if it is meant so, adding = "sum" in the bank',
    )
    for place in machine.places:
        gpus = any(node.gpus for node in machine.nodes if place.name in node.partitions)
        weighed = set(parse_weights(place.weights)) if place.weights else {"cpu"}
        if gpus and not any(name.startswith("gres/gpu") for name in weighed):
            remedy = f'PartitionName={place.name} ... TRESBillingWeights="CPU=...,Mem=...,GRES/gpu=..." in slurm.conf, and the same in the bank'
            yield HealthCheck(
                f"partition {place.name} has GPUs, and they cost nothing", False, remedy
            )


def limits(places: Sequence[SlurmPartition]) -> Iterator[HealthCheck]:
    """A job without a finite limit has no highest price: it is refused, or runs without a hold where the agent is told so."""
    endless = [place.name for place in places if not place.most_minutes]
    for name in endless:
        remedy = f"PartitionName={name} ... MaxTime=7-00:00:00 DefaultTime=01:00:00 in slurm.conf, then scontrol reconfigure"
        yield HealthCheck(
            f"partition {name} has no finite MaxTime: jobs without a limit are refused, or run without a hold",
            False,
            remedy,
        )
    if not endless:
        yield HealthCheck("every partition has a finite time limit", True)


def plugins(config: Config, agent: AgentHealth | None) -> Iterator[HealthCheck]:
    """What Slurm was told to load, and whether it fits the agent."""
    steps = listed(config.get("PrEpPlugins", ""))
    if "prep/fairbank" in steps:
        yield HealthCheck("slurmctld loads prep/fairbank", True)
        yield from _parameters(config, agent)
    elif asks_by_script(config):
        yield HealthCheck(
            f"slurmctld asks the bank by a script, without a plug-in: {_prolog(config)}", True
        )
    else:
        yield HealthCheck(
            f"slurmctld does not ask before a job starts: PrEpPlugins={','.join(steps) or '(none)'}",
            False,
            f"PrEpPlugins=prep/fairbank,prep/script in slurm.conf and restart slurmctld ({_GUIDE}); leave it so while you only look on",
        )
    for key, where in (("JobSubmitPlugins", "slurmctld"), ("CliFilterPlugins", "submit commands")):
        remedy = (
            f"{key}=lua in slurm.conf, with our files beside it (docs/howto/submission-policy.md)"
        )
        yield HealthCheck(
            f"{where}: {key}={config.get(key, '') or '(none)'}", loads_lua(config, key), remedy
        )


def _parameters(config: Config, agent: AgentHealth | None) -> Iterator[HealthCheck]:
    said = parameters(config.get("PrEpParameters", ""))
    socket = said.get("fairbank_socket", SOCKET)
    patience = said.get("fairbank_patience", "")
    seconds = float(patience) if patience.isascii() and patience.isdigit() else PATIENCE_SECONDS
    if agent is None:
        return
    yield HealthCheck(
        f"plug-in and agent meet at {socket}",
        socket == agent.socket,
        f"the agent listens at {agent.socket}: PrEpParameters=fairbank_socket={agent.socket}, or plugin.socket in its settings",
    )
    yield HealthCheck(
        f"the plug-in waits {seconds:g} s for the agent, the agent {agent.patience:g} s for the bank",
        agent.patience < seconds,
        f"make the agent's patience less, or the plug-in's more: PrEpParameters=...,fairbank_patience={agent.patience + 5:.0f}",
    )


def agents(config: Config, agent: AgentHealth, now: int) -> Iterator[HealthCheck]:
    """Whether the agent hears slurmctld, reaches the bank and can keep what it hears; and what befell it lately."""
    status = agent.status
    bank, outbox = status["bank"], status["outbox"]
    user = slurm_uid(config)
    if user is not None:
        remedy = f"plugin.slurm_user = {user} in the agent's settings"
        yield HealthCheck(
            f"the agent lets SlurmUser in ({config.get('SlurmUser', '')})",
            user in agent.slurm_users,
            remedy,
        )
    heard = [
        each["slurm"] for each in status["plugins"] if each["cluster"] == config.get("ClusterName")
    ]
    yield HealthCheck(
        f"slurmctld is connected to the agent: {', '.join(heard) or 'no'}",
        bool(heard),
        "restart slurmctld once its plug-in is installed (a reconfiguration does not load it), and look for Fairbank in its log",
    )
    yield _reaching(bank)
    kept = (
        f"{outbox['reports']} reports wait"
        if not outbox["error"]
        else f"cannot be written: {outbox['error']}"
    )
    yield HealthCheck(
        f"the agent's outbox: {kept}",
        not outbox["error"],
        "make room on its disk; the agent goes on by itself",
    )
    if later := outbox.get("retry_later"):
        remedy = "set the clocks of both hosts alike (chronyc tracking); the agent tells them again by itself"
        yield HealthCheck(
            f"the agent's ends: {later} are too early for the bank's clock, and told again later",
            False,
            remedy,
        )
    yield _understanding(status.get("quarantine"))
    for each in status.get("incidents", ()):
        if now - each["last"] < INCIDENT_SECONDS:
            how_often = (
                f"{each['count']} since {iso(each['since'])}, the last at {iso(each['last'])}"
            )
            yield HealthCheck(
                f"the agent tells of {each['about']}: {how_often}: {each['text']}",
                False,
                each["remedy"],
            )


def _reaching(bank: Mapping[str, Any]) -> HealthCheck:
    if bank["reachable"] is None:
        remedy = "it asks when slurmctld's plug-in has said for which cluster: see whether that is connected"
        return HealthCheck("the agent reaches the bank: it has not asked yet", False, remedy)
    trouble = "" if bank["reachable"] else f": {bank['error']}"
    remedy = bank["remedy"] or "bank.server in the agent's settings; fairbank status there"
    return HealthCheck(f"the agent reaches the bank{trouble}", bank["reachable"], remedy)


def _understanding(quarantine: Mapping[str, Any] | None) -> HealthCheck:
    if quarantine is None:
        return HealthCheck(
            "the agent is older than this command",
            False,
            "restart it: systemctl restart fairbank-agent",
        )
    but = (
        f", but for {quarantine['frames']} frames, the last: {quarantine['last']}; they are in {quarantine['path']}"
        if quarantine["frames"]
        else ""
    )
    return HealthCheck(
        f"the agent understands slurmctld's plug-in{but}", not but, quarantine["remedy"]
    )


def policies(policy: PolicyFileHealth, now: int) -> Iterator[HealthCheck]:
    """Whether the submission policy is whole, readable and of today."""
    again = "fairbank slurm sync; and let it run every few minutes: systemctl enable --now fairbank-sync.timer"
    yield HealthCheck(
        f"{policy.path} is {'whole' if policy.whole else 'damaged: jobs are not checked'}",
        policy.whole,
        again,
    )
    fresh = now - policy.written <= policy.stale_seconds
    old = (
        "" if fresh else f", more than {policy.stale_seconds} s ago: its balances are not judged by"
    )
    yield HealthCheck(f"{policy.path} is of {iso(policy.written)}{old}", fresh, again)
    if not policy.readable:
        yield HealthCheck(
            f"slurmctld's user may not read {policy.path}",
            False,
            f"chmod a+r {policy.path}, or write it as SlurmUser",
        )


def asks_by_script(config: Config) -> bool:
    """Whether our PrologSlurmctld stands in for the plug-in; then no agent is needed."""
    return "prep/fairbank" not in listed(config.get("PrEpPlugins", "")) and bool(_prolog(config))


def _prolog(config: Config) -> str:
    """Our script, where slurmctld runs it. Newer ones run several, and number them: PrologSlurmctld[0]."""
    told = (text for name, text in config.items() if name.partition("[")[0] == "PrologSlurmctld")
    return next((text for text in told if text.endswith("/prolog_slurmctld")), "")


def loads_lua(config: Config, key: str) -> bool:
    """Whether this setting names Slurm's Lua plug-in."""
    return "lua" in listed(config.get(key, ""))
