"""The rules that `fairbank shadow --rules` counts are those of the plug-ins."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest

from fairbank.bank.records import BankCluster, BankProject
from fairbank.slurm.parsers.values import ParsedRows, SlurmNode, SlurmPartition
from fairbank.slurm.policy import SiteRules
from fairbank.slurm.policy_file import AccountRule, PolicyAction, SubmissionPolicy, render
from fairbank.slurm.shadow_rules import RuleInput, SubmissionRule, count_by_rule
from tests.plugins.interpreter import Lua
from tests.plugins.policies import ASTRO, BIO, OPEN_POLICY, SITE_POLICY, WRITTEN
from tests.slurm.reconcile.jobs import a_job

PROJECTS = [
    BankProject(
        id=project.gid,
        gname=project.group,
        gid=project.gid,
        account=project.account,
        members=project.members,
    )
    for project in (ASTRO, BIO)
]
STRICT = SiteRules(account=AccountRule.GROUP, require_partition=True, one_partition=True)


@pytest.mark.parametrize(
    ("policy", "site"), [(OPEN_POLICY, SiteRules()), (SITE_POLICY, STRICT)], ids=["slurm", "hadm"]
)
def test_plugins_refuse_what_shadow_counts(
    lua: Lua, policy: SubmissionPolicy, site: SiteRules
) -> None:
    policy = msgspec.structs.replace(
        policy, projects=(ASTRO, BIO), price=PolicyAction.IGNORE, short_terms=(), balances=None
    )
    check, table = lua.module("rules").check, lua.module("policy_file").parse(render(policy))
    cluster = BankCluster(
        "lab",
        {place.partition.name: place.partition for place in policy.partitions},
        free_states=frozenset(),
    )
    add_gpus = lua.module("request").add_gpus
    nodes = [
        SlurmNode("n", place.node_cpus, 1, (place.partition.name,), tuple(place.gpus))
        for place in policy.partitions
        if place.node_cpus  # the nodes of partition long are unknown
    ]
    for account, gid, partition, minutes, gpu in product(
        ("wg_astro", "wg_bio", "nobody"),
        (60_651, 60_652, 100),
        ("cpu", "cpu,gpu", "gpu-t4", "long", "nowhere", "long,nowhere", "cpu,nowhere"),
        (10, None),
        ("", "a100", "t4"),
    ):
        requested = None if partition == "cpu" else partition
        job = lua.table(
            uid=60_601,
            gid=gid,
            account=account,
            partition=requested,
            minutes=minutes or float("inf"),
            gpus=add_gpus(lua.table(), gpu and f"gpu:{gpu}", "job"),
        )
        record = a_job(
            1,
            owner=60_601,
            account=account,
            partition=partition,
            limit_seconds=minutes and minutes * 60,
            tres=f"cpu=1,gres/gpu:{gpu}=1" if gpu else "cpu=1",
        )
        world = RuleInput(
            site=site,
            cluster=cluster,
            projects=PROJECTS,
            partitions=ParsedRows((SlurmPartition("cpu", is_default=True),)),
            groups={1: gid},
            nodes=ParsedRows(tuple(nodes)),
        )
        is_counted = any(
            count.jobs for count in count_by_rule([record], world) if count.action.value == "refuse"
        )
        errors = check(table, job, WRITTEN).errors
        where = account, gid, partition, minutes, gpu
        assert (len(errors) > 0) is is_counted, (where, dict(errors))


def test_gpu_type_of_accounting_counts_in_any_case() -> None:
    """Accounting has the name of the TRES, not the type that was requested."""
    (place,) = (place for place in OPEN_POLICY.partitions if place.gpus == {"a100": 4})
    name = place.partition.name
    world = RuleInput(
        site=SiteRules(),
        cluster=BankCluster("lab", {name: place.partition}, free_states=frozenset()),
        projects=PROJECTS,
        partitions=ParsedRows(()),
        groups={},
        nodes=ParsedRows((SlurmNode("n", 48, 1, (name,), ("A100",)),)),
    )
    for kind, lacking in (("a100", 0), ("A100", 0), ("t4", 1)):
        job = a_job(1, owner=60_601, partition=name, tres=f"cpu=1,gres/gpu:{kind}=1")
        counts = {count.rule: count.jobs for count in count_by_rule([job], world)}
        assert counts[SubmissionRule.GPUS] == lacking, kind
