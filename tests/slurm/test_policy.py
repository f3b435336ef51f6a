"""The site's rules of submission, and the policy that is built from them and Slurm's partitions."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairbank.bank.allocation import AllocationState
from fairbank.bank.rules.short_term import ShortTerm
from fairbank.cluster.allocated_tres import Memory, MemoryUnit
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers.machine import read_nodes, read_partitions
from fairbank.slurm.policy import SiteRules, build_policy, read_site_rules
from fairbank.slurm.policy_file import AccountRule, SubmissionPolicy
from tests.slurm.reconcile.jobs import NOW, a_project, an_allocation

PARTITIONS = """\
PartitionName=cpu Default=YES DefaultTime=NONE MaxTime=1-00:00:00
PartitionName=gpu Default=NO DefaultTime=01:00:00 MaxTime=UNLIMITED
"""
PRICES = Cluster("lab", {name: Partition(name, "cpu") for name in ("cpu", "gpu")})


def rules(tmp_path: Path, text: str) -> SiteRules:
    path = tmp_path / "slurm.toml"
    path.write_text(text)
    return read_site_rules(str(path))


def policy(site: SiteRules) -> SubmissionPolicy:
    partitions = read_partitions(PARTITIONS).rows
    return build_policy(site, PRICES, (), (), partitions=partitions, nodes=(), now=1)


def choices(site: SiteRules) -> tuple[AccountRule, str | None, bool]:
    built = policy(site)
    return built.account, built.default_partition, built.one_partition


def test_default_profile_takes_what_slurm_takes(tmp_path: Path) -> None:
    expected = (AccountRule.MEMBER, "cpu", False)
    assert choices(SiteRules()) == choices(rules(tmp_path, 'profile = "slurm"')) == expected


def test_profile_hadm_is_strict(tmp_path: Path) -> None:
    expected = (AccountRule.GROUP, None, True)
    assert choices(rules(tmp_path, 'profile = "hadm"')) == expected


def test_setting_overrules_its_profile(tmp_path: Path) -> None:
    site = rules(tmp_path, 'profile = "hadm"\nrequire_partition = false\naccount = "member"')
    assert choices(site) == (AccountRule.MEMBER, "cpu", True)


def test_unknown_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="gold"):
        rules(tmp_path, 'profile = "gold"')


def test_limit_of_a_partition_is_its_default_else_its_maximum() -> None:
    assert [place.default_minutes for place in policy(SiteRules()).partitions] == [1440, 60]


def test_short_term_allocations_are_those_that_are_not_over_in_partitions_of_the_cluster() -> None:
    projects = [a_project(1, "chem"), a_project(2, "bio")]
    course = {"partition": "gpu", "reservation": "course"}
    allocations = [
        an_allocation(1, 1, 0, **course),
        an_allocation(2, 2, 0, reservation="night", start=NOW + 60),
        an_allocation(3, 2, 0),
        an_allocation(4, 2, 0, end=NOW, **course),
        an_allocation(5, 2, 0, state=AllocationState.ENDED, **course),
        an_allocation(6, 2, 0, partition="elsewhere"),
        an_allocation(7, 9, 0, **course),
    ]
    built = build_policy(
        SiteRules(), PRICES, projects, allocations,
        partitions=read_partitions(PARTITIONS).rows, nodes=(), now=NOW,
    )  # fmt: skip
    assert built.short_terms == (
        ShortTerm("chem", "gpu", "course", NOW - 10**6, NOW + 10**6),
        ShortTerm("bio", None, "night", NOW + 60, NOW + 10**6),
    )


def test_default_memory_of_the_bank_counts_where_slurm_has_none() -> None:
    """The bank has 2000 MiB per CPU for three partitions, of which one has its own at Slurm, by
    CPU, and one by node.
    """
    text = (
        "PartitionName=cpu DefMemPerNode=UNLIMITED\n"
        "PartitionName=gpu DefMemPerCPU=1000\n"
        "PartitionName=big DefMemPerNode=64000\n"
    )
    memory = Memory(2000, MemoryUnit.CPU)
    prices = Cluster(
        "lab",
        {name: Partition(name, "cpu", default_memory=memory) for name in ("cpu", "gpu", "big")},
    )
    partitions = read_partitions(text).rows
    built = build_policy(SiteRules(), prices, (), (), partitions=partitions, nodes=(), now=1)
    assert [place.memory_per_cpu for place in built.partitions] == [2000, 1000, 0]


def test_partition_has_the_gpus_that_every_node_has_and_gives_whole_nodes_as_slurms() -> None:
    """One node has two V100 and one GPU without a type, the other four V100."""
    text = (
        "NodeName=g1 CPUTot=8 RealMemory=1 Partitions=gpu Gres=gpu:V100:2,gpu:1\n"
        "NodeName=g2 CPUTot=16 RealMemory=1 Partitions=gpu Gres=gpu:V100:4\n"
    )
    partitions = "PartitionName=gpu OverSubscribe=EXCLUSIVE\nPartitionName=cpu\n"
    prices = Cluster("lab", {name: Partition(name, name) for name in ("gpu", "cpu")})
    built = build_policy(
        SiteRules(), prices, (), (),
        partitions=read_partitions(partitions).rows, nodes=read_nodes(text).rows, now=1,
    )  # fmt: skip
    assert [(place.gpus, place.exclusive) for place in built.partitions] == [
        ({"V100": 2, "any": 0}, True),
        ({}, False),
    ]
    assert [(place.node_cpus, place.most_cpus) for place in built.partitions] == [(8, 16), (0, 0)]


def test_policy_has_members_through_the_unix_group() -> None:
    """Their current group need not be the project's when they submit."""
    chem = msgspec.structs.replace(a_project(1, "chem", members=[102]), group_members={101})
    built = build_policy(SiteRules(), PRICES, (chem,), (), partitions=(), nodes=(), now=1)
    assert [project.members for project in built.projects] == [(101, 102)]
