"""Bank of the cluster of `fairbank cluster up`: settings, a project, and credit for a year."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from fairbank.bank.allocation import Allocation, AllocationTerms
from fairbank.bank.project import Role
from fairbank.bank.query import AllocationQuery, Page, ProjectQuery
from fairbank.bank.refusals import Refusal, remedies, sentence
from fairbank.bank.requests import CreateProject, Open, Request, SetMember, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import Conflict, FairbankError
from fairbank.core.gres import GPU, Gres, gres_counts, gres_texts
from fairbank.core.ids import is_name
from fairbank.core.settings_file import toml_string
from fairbank.core.time import Instant, parse_moment
from fairbank.core.units import SuMinutes, exact_decimal
from fairbank.service.ledger import Ledger
from fairbank.service.ops.atomic_file import atomic_write
from fairbank.setup.bank_settings import SystemClock, opened_store, settings_of
from fairbank.setup.init import SETTINGS, init
from fairbank.store.contract import Store
from fairbank.wlm.core.settings import WlmSettings

PROJECT, RESOURCE, CATEGORY = "default", "cpu", "research"
_YEAR_HOURS = 8_760


def create_bank(directory: Path, settings: WlmSettings, *, again: bool) -> Path:
    """Create settings and store, or migrate an older store. Return the settings.

    Each CPU costs 1 SU per hour, in all partitions, and each GPU what the TRESBillingWeights of the
    partition say.

    Args:
        settings: settings of the cluster, whose name the bank has.
        again: write the settings again, because the cluster has changed.
    """
    file, cluster = directory / SETTINGS, settings.cluster.cluster_name
    if again:
        file.unlink(missing_ok=True)
    lines = [
        f"[clusters.{toml_string(cluster)}]",
        f"agents = [{os.getuid()}]",
        f'adding = "{settings.accounting.billing_rule.value}"',
    ]
    lines += [
        f"default_partition = {toml_string(rules.name)}"
        for rules in settings.partitions
        if rules.is_default
    ]
    for rules in settings.partitions:
        lines += _partition_table(rules, settings)
    with suppress(Conflict):  # nothing is missing
        init(str(directory), None, cluster, "\n".join(lines) + "\n")
    add_partitions(file, settings)
    return file


def add_partitions(file: Path, settings: WlmSettings, others: Iterable[str] = ()) -> list[str]:
    """Let the bank bill the partitions that it does not know yet. Return their names.

    What the file says of the others stays: prices may have been changed there.

    Args:
        file: settings of the bank, which a running bank reads at its next start.
        settings: settings of the cluster.
        others: partitions that are not in them, such as those of `scontrol create`.
    """
    missing = unbilled_partitions(file, settings, others)
    if missing:
        lines = [line for rules in missing for line in _partition_table(rules, settings)]
        text = file.read_text(encoding="utf-8").rstrip("\n")
        with atomic_write(file) as output:
            output.write("\n".join([text, *lines, ""]).encode())
    return [rules.name for rules in missing]


def unbilled_partitions(
    file: Path, settings: WlmSettings, others: Iterable[str] = ()
) -> list[PartitionRules]:
    """Return the partitions that the settings of the bank lack. See `add_partitions`."""
    billed = settings_of(str(file)).clusters.get(settings.cluster.cluster_name)
    if billed is None:  # the cluster has got another name
        return []
    rules = {name: PartitionRules(name=name) for name in others if is_name(name)}
    rules |= {rules.name: rules for rules in settings.partitions}
    return [rules[name] for name in rules if name not in billed.partitions]


def _partition_table(rules: PartitionRules, settings: WlmSettings) -> list[str]:
    table = f"clusters.{toml_string(settings.cluster.cluster_name)}"
    return [
        "",
        f"[{table}.partitions.{toml_string(rules.name)}]",
        f'resource = "{RESOURCE}"',
        f"weights = {toml_string(_weights(rules))}",
        *_sizes(rules, settings.nodes),
    ]


def _weights(rules: PartitionRules) -> str:
    gpus = {name: weight for name, weight in (rules.weights or {}).items() if "gres/gpu" in name}
    return ",".join(("CPU=1.0", *(f"{name}={exact_decimal(gpus[name])}" for name in gpus)))


def _sizes(rules: PartitionRules, nodes: Iterable[Node]) -> Iterator[str]:
    """Yield the lines with the size of the nodes, if it is one, and the default memory."""
    alike = {
        (node.cpus, node.memory, node.gpus)
        for node in nodes
        if not rules.nodes or node.name in rules.nodes
    }
    if len(alike) == 1:
        ((cpus, memory, gpus),) = alike
        gres = ",".join(gres_texts(gres_counts(Gres(GPU, *one) for one in gpus)))
        yield from (f"node_cpus = {cpus}", f"node_memory = {memory}")
        yield f"node_gres = {toml_string(gres)}"
    if rules.memory_per_cpu is not None:
        yield f"def_mem_per_cpu = {rules.memory_per_cpu}"


def find_year(settings: Path) -> Allocation | None:
    """Return the allocation of the user's project that has not ended; None without one."""
    with opened_store(str(settings)) as store:
        return _current(store, _project(store), SystemClock().now())


def grant_year(settings: Path, cpus: int) -> Allocation:
    """Return the allocation of the user's project that has not ended, else a new one.

    It has the credit for a year of all CPUs.

    Args:
        settings: settings of the bank, which may be served.
        cpus: CPUs of the machine.
    """
    now = SystemClock().now()
    with opened_store(str(settings)) as store:
        ledger = Ledger(store, settings_of(str(settings)).policy)
        project = _project(store)
        if project is None:
            made = CreateProject(gname=PROJECT, gid=os.getgid(), account=PROJECT)
            project = _apply(ledger, made).project or 0
            _apply(ledger, SetMember(project=project, uid=os.getuid(), role=Role.MEMBER))
        allocation = _current(store, project, now)
        if allocation is None:
            end = parse_moment("now+1year", now)
            year = Open(
                terms=AllocationTerms(project, RESOURCE, CATEGORY, now, end),
                deposit=SuMinutes(cpus * _YEAR_HOURS * 60),
                comment="a year of this machine",
            )
            number = _apply(ledger, year).allocation
            with store.reading() as reader:
                query = AllocationQuery(ids=frozenset({number or 0}))
                (allocation,) = reader.allocations(query, Page(1))
        return allocation


def _project(store: Store) -> int | None:
    with store.reading() as reader:
        return next((p.id for p in reader.projects(ProjectQuery(account=PROJECT), Page(1))), None)


def _current(store: Store, project: int | None, now: Instant) -> Allocation | None:
    if project is None:
        return None
    query = AllocationQuery(projects=frozenset({project}), resource=RESOURCE, open_at=now)
    with store.reading() as reader:
        return next(iter(reader.allocations(query, Page(1))), None)


def _apply(ledger: Ledger, request: Request) -> Done:
    """Apply a request of this user. Raises FairbankError if it is refused."""
    submitted = SubmittedRequest(request, SystemClock().now(), os.getuid())
    (outcome,) = ledger.apply([submitted])
    if isinstance(outcome, Refusal):
        raise FairbankError(sentence(outcome), remedy=remedies(outcome)[0])
    return outcome
