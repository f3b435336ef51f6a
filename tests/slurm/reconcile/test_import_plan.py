"""Slurm's accounts, users and partitions as projects, members and settings, and the reverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from fairbank.bank.allocation import AllocationState
from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.gres import gres_counts, parse_gres
from fairbank.core.tres import BillingRule
from fairbank.service.settings import read_settings
from fairbank.setup.init import settings_text
from fairbank.slurm.parsers.values import SlurmAssociation, SlurmNode, SlurmPartition, SlurmQos
from fairbank.slurm.reconcile.accounts import (
    AccountUsage,
    SacctmgrChange,
    TargetAccounts,
    billing_limit,
    plan_changes,
)
from fairbank.slurm.reconcile.import_plan import (
    NewMember,
    PlannedProject,
    SlurmPeople,
    plan_allocations,
    plan_import,
)
from fairbank.slurm.reconcile.node_sizes import size_differences
from fairbank.slurm.reconcile.prices import SlurmMachine, price_differences, price_settings
from tests.slurm.reconcile.jobs import CLUSTER, LENIENT, NOW, a_job, a_project, an_allocation

GROUPS = {"chem": 5001, "qmc": 5002, "bio": 5003}
USERS = {"alice": 101, "bob": 102}
NAMES = {number: name for name, number in USERS.items()}


def changes_of(
    target: TargetAccounts, groups: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> tuple[list[SacctmgrChange], list[str]]:
    """Return changes and notes; `groups` are the users' Unix groups on this host."""
    return plan_changes(target, NAMES.get, lambda user: groups.get(user, ()))


def account(name: str, parent: str = "root", **more: str) -> SlurmAssociation:
    return SlurmAssociation(name, parent=parent, **more)  # type: ignore[arg-type]


TREE = (
    account("root", parent=""),
    account("qmc", "chem"),
    account("chem"),
    SlurmAssociation("qmc", "alice"),
    SlurmAssociation("chem", "bob"),
)


# --- import ---


def test_parents_come_before_their_children() -> None:
    plan = plan_import(SlurmPeople(associations=TREE), (), GROUPS.get, USERS.get)
    assert plan.notes == ()
    assert plan.steps == (
        PlannedProject(account="chem", group="chem", gid=5001),
        PlannedProject(account="qmc", group="qmc", gid=5002, parent="chem"),
        NewMember(account="qmc", user="alice", uid=101, role="member"),
        NewMember(account="chem", user="bob", uid=102, role="member"),
    )


def test_coordinators_are_imported() -> None:
    centre = SlurmPeople(
        associations=TREE, coordinators=(SlurmAssociation("chem", coordinators=("bob",)),)
    )
    assert (
        NewMember(account="chem", user="bob", uid=102, role="coordinator")
        in plan_import(centre, (), GROUPS.get, USERS.get).steps
    )


def test_existing_projects_stay_unchanged() -> None:
    known = [a_project(1, "chem", members=[102]), a_project(2, "qmc", members=[101])]
    assert plan_import(SlurmPeople(associations=TREE), known, GROUPS.get, USERS.get).steps == ()


def test_removed_project_is_reported_not_created() -> None:
    """Its users are not imported, and an account below it gets no parent in the bank."""
    plan = plan_import(
        SlurmPeople(associations=TREE), [a_project(7, "chem", removed=True)], GROUPS.get, USERS.get
    )
    assert plan.notes == (
        "account chem: its project was removed; bring it back: fairbank project set 7 --restore",
    )
    assert plan.steps == (
        PlannedProject(account="qmc", group="qmc", gid=5002),
        NewMember(account="qmc", user="alice", uid=101, role="member"),
    )


def test_name_conflicts_are_reported_and_others_imported() -> None:
    """The bank accepts no gid or group twice, including those of a removed project."""
    chemists = msgspec.structs.replace(a_project(7, "chemistry", removed=True), gid=5001)
    qmc = msgspec.structs.replace(a_project(8, "carlo"), gname="qmc")
    tree = (*TREE, account("bio"), SlurmAssociation("bio", "bob"), account("twin"))
    plan = plan_import(
        SlurmPeople(associations=tree), [chemists, qmc], {**GROUPS, "twin": 5003}.get, USERS.get
    )
    assert plan.notes == (
        (
            "account chem: project 7 (chemistry, removed) has its gid 5001 already; name another:"
            " --gid chem=NUMBER"
        ),
        "account twin: account bio has its gid 5003 already; name another: --gid twin=NUMBER",
        (
            "account qmc: project 8 (carlo) has its group already; say which account that one has:"
            " fairbank project set 8 -A qmc"
        ),
    )
    assert plan.steps == (
        PlannedProject(account="bio", group="bio", gid=5003),
        NewMember(account="bio", user="bob", uid=102, role="member"),
    )


def test_name_unknown_to_this_host_is_reported() -> None:
    tree = (
        *TREE,
        account("lab7"),
        SlurmAssociation("lab7", "bob"),
        SlurmAssociation("chem", "ghost"),
    )
    plan = plan_import(SlurmPeople(associations=tree), (), GROUPS.get, USERS.get)
    assert len(plan.steps) == 4
    assert [note.partition(":")[0] for note in plan.notes] == ["account lab7", "user ghost"]
    assert "--gid lab7=NUMBER" in plan.notes[0]


def test_ignored_user_is_neither_entered_nor_reported() -> None:
    """--pass-over names an account with its users, or a user in all accounts. An account below an
    ignored one gets no parent in the bank.
    """
    tree = (*TREE, SlurmAssociation("chem", "ghost"), SlurmAssociation("qmc", "ghost"))
    plan = plan_import(SlurmPeople(associations=tree), (), GROUPS.get, USERS.get, {"chem", "ghost"})
    assert plan.notes == ()
    assert plan.steps == (
        PlannedProject(account="qmc", group="qmc", gid=5002),
        NewMember(account="qmc", user="alice", uid=101, role="member"),
    )


def test_parent_cycle_ends() -> None:
    circle = (account("chem", "qmc"), account("qmc", "chem"))
    assert len(plan_import(SlurmPeople(associations=circle), (), GROUPS.get, USERS.get).steps) == 2


MACHINE = SlurmMachine(
    cluster="lab",
    partitions=(
        SlurmPartition("std", weights="CPU=1.0,Mem=0.5G"),
        SlurmPartition("fast"),
        SlurmPartition("vis"),
    ),
    nodes=(SlurmNode("v1", 8, 1000, ("vis",), ("t4",)),),
    qos=(SlurmQos("normal", 0, "1.000000"), SlurmQos("high", 100, "1.500000")),
    flags="MAX_TRES,FAIR_TREE",
)


def test_settings_price_as_slurm_bills() -> None:
    text = price_settings(MACHINE, (account("chem", shares="50"),))
    assert '[clusters.lab]\nadding = "max_tres"\n' in text
    assert (
        '[clusters.lab.partitions."std"]\nresource = "cpu"\nweights = "CPU=1.0,Mem=0.5G"\n' in text
    )
    assert '[clusters.lab.partitions."fast"]\nresource = "cpu"\n\n' in text
    assert '[clusters.lab.partitions."vis"]\nresource = "gpu"\n' in text
    assert '[clusters.lab.qos_factors]\n"high" = "1.500000"\n' in text
    assert text.endswith("#   chem  50\n")


def test_settings_have_node_sizes_and_default_memory() -> None:
    """Of nodes that differ the settings have the largest figures, and say so."""
    small = SlurmNode("n1", 8, 1000, ("std",), size=NodeSize(8, 1000, {"gres/gpu": 2}))
    large = SlurmNode(
        "n2", 8, 1000, ("std",), size=NodeSize(6, 4000, {"gres/gpu": 1, "gres/gpu:t4": 1})
    )
    machine = msgspec.structs.replace(
        MACHINE,
        partitions=(
            SlurmPartition("std", is_default=True),
            SlurmPartition("fast", exclusive=True),
            SlurmPartition("empty", exclusive=True),
        ),
        nodes=(small, large, small, SlurmNode("n4", 4, 500, ("fast",), size=NodeSize(4, 500, {}))),
        default_memory=Memory(500, MemoryUnit.CPU),
    )
    text = price_settings(machine, [])
    assert (
        'default_partition = "std"    # leave it out if jobs without --partition are refused\n'
    ) in text
    assert (
        "# its nodes differ: 2 with 8 CPUs, 1000 MiB, gpu:2; 1 with 6 CPUs, 4000 MiB, gpu:t4:1;"
        " these are the largest figures\n"
        "node_cpus = 8\n"
        "node_memory = 4000    # MiB\n"
        'node_gres = ["gpu:2", "gpu:t4:1"]\n'
        "def_mem_per_cpu = 500    # MiB\n"
    ) in text
    assert (
        'node_gres = ""\ndef_mem_per_cpu = 500    # MiB\n'
        "exclusive = true    # OverSubscribe=EXCLUSIVE\n"
    ) in text


def test_partition_of_whole_nodes_that_slurm_does_not_show_is_noted(tmp_path: Path) -> None:
    """Nodes of a cloud that are powered down. The bank refuses `exclusive` without their size."""
    partitions = (SlurmPartition("cloud", nodes="c[1-9]", exclusive=True),)
    machine = msgspec.structs.replace(MACHINE, partitions=partitions)
    text = price_settings(machine, [])
    line = next(line for line in text.splitlines() if "exclusive" in line)
    assert line.startswith("# exclusive = true    # OverSubscribe=EXCLUSIVE: each job takes whole")
    assert "Slurm shows no node of this partition" in line
    assert "quotes count only what jobs request" in line

    def differences(settings: str) -> list[str]:
        file = tmp_path / "fairbank.toml"
        file.write_text(settings_text(tmp_path, "memory:") + settings)
        return list(size_differences(machine, read_settings(file).cluster_map()["lab"]))

    assert differences(text) == [
        "partition cloud: exclusive is true at Slurm, and the bank's settings lack it"
    ]
    assert differences(text.replace(line, "exclusive = true\nnode_cpus = 64")) == []


def test_bank_reads_the_settings_of_nodes_with_different_gpus(tmp_path: Path) -> None:
    """A node has 4 GPUs, a100 or t4. The bank did not start with what was written for them."""
    nodes = [
        SlurmNode(
            kind, 8, 1000, ("std",), (kind,), NodeSize(8, 1000, gres_counts(parse_gres(gres)))
        )
        for kind, gres in (("a100", "gpu:a100:4"), ("t4", "gpu:t4:4"), ("t4", "gpu:t4:2"))
    ]
    partitions = (SlurmPartition("std", weights="CPU=1.0,GRES/gpu=12.0", exclusive=True),)
    machine = msgspec.structs.replace(MACHINE, partitions=partitions, nodes=nodes)
    text = price_settings(machine, [])
    assert 'node_gres = ["gpu:a100:4", "gpu:t4:4"]\n' in text
    file = tmp_path / "fairbank.toml"
    file.write_text(settings_text(tmp_path, "memory:") + text)
    cluster = read_settings(file).cluster_map()["lab"]
    gres = {"gres/gpu": 4, "gres/gpu:a100": 4, "gres/gpu:t4": 4}
    kinds = tuple(gres_counts(parse_gres(text)) for text in ("gpu:a100:4", "gpu:t4:4"))
    assert cluster.partitions["std"].size == NodeSize(8, 1000, gres, kinds)
    assert list(price_differences(machine, cluster)) == []
    file.write_text(
        file.read_text().replace('"gpu:a100:4", "gpu:t4:4"', '"gpu:t4:4", "gpu:a100:4"')
    )
    other_order = read_settings(file).cluster_map()["lab"]
    assert list(size_differences(machine, other_order)) == []


@pytest.mark.parametrize("fewer", ["", "gpu:a100:2"])
def test_kind_of_node_with_fewer_gpus_than_another_is_no_difference(
    tmp_path: Path, fewer: str
) -> None:
    """The import leaves it out, as no node of it costs more."""
    sizes = [
        NodeSize(8, 1000, gres_counts(parse_gres(gres)) if gres else {})
        for gres in ("gpu:a100:4", fewer)
    ]
    nodes = [
        SlurmNode(f"n{number}", 8, 1000, ("std",), (), size) for number, size in enumerate(sizes)
    ]
    partitions = (SlurmPartition("std", weights="CPU=1.0,GRES/gpu=12.0"),)
    machine = msgspec.structs.replace(MACHINE, partitions=partitions, nodes=nodes)
    text = price_settings(machine, [])
    file = tmp_path / "fairbank.toml"
    for value in ('"gpu:a100:4"', f'["gpu:a100:4", "{fewer}"]', '"gpu:a100:2"'):
        settings = text.replace('node_gres = "gpu:a100:4"', f"node_gres = {value}")
        file.write_text(settings_text(tmp_path, "memory:") + settings)
        differences = list(size_differences(machine, read_settings(file).cluster_map()["lab"]))
        assert (differences == []) == ("a100:4" in value), value


def test_prices_that_differ_are_reported() -> None:
    known = Cluster(
        "lab",
        {
            "std": Partition("std", "cpu", {"cpu": Fraction(2)}, BillingRule.SUM),
            "vis": Partition("vis", "gpu"),
        },
    )
    differences = price_differences(MACHINE, known)
    assert [difference.partition(":")[0] for difference in differences] == [
        "partition std",
        "partition std",
        "partition fast",
        "QOS high",
    ]


def test_settings_without_slurm_user_say_what_to_add() -> None:
    assert (
        "agents = []    # the uids that report runs: Slurm's user, whose number is to be put here:"
        " id -u slurm\n" in price_settings(MACHINE, [])
    )
    with_uid = msgspec.structs.replace(MACHINE, slurm_uid=64_030)
    assert "agents = [64030]    # the uids" in price_settings(with_uid, [])


def test_equal_prices_have_no_difference() -> None:
    place = SlurmPartition("cpu", weights="CPU=1.0,Mem=0.5G")
    assert (
        price_differences(
            SlurmMachine(cluster="lab", partitions=(place,), flags="MAX_TRES"), CLUSTER
        )
        == []
    )


# --- history ---


def test_history_is_covered_with_its_cost() -> None:
    jobs = [
        a_job(1),
        a_job(2, submitted=NOW - 40_000),
        a_job(3, elapsed=0),
        a_job(4, state="NODE_FAIL"),
        a_job(5, account="nobody"),
    ]
    (allocation,) = plan_allocations(jobs, [a_project(1, "chem")], [], CLUSTER)
    assert (
        allocation.account,
        allocation.terms.resource,
        allocation.deposited,
        allocation.jobs,
    ) == ("chem", "cpu", 80, 3)
    assert (allocation.terms.start, allocation.terms.end) == (NOW - 50_000, NOW - 40_000 + 1)


def test_free_runs_are_covered_too() -> None:
    failed = a_job(4, submitted=NOW - 90_000, state="NODE_FAIL")
    (alone,) = plan_allocations([failed], [a_project(1, "chem")], [], CLUSTER)
    assert (alone.terms.start, alone.terms.end, alone.deposited, alone.jobs) == (
        failed.start,
        (failed.start or 0) + 1,
        0,
        1,
    )
    (both,) = plan_allocations([a_job(1), failed], [a_project(1, "chem")], [], CLUSTER)
    assert (both.terms.start, both.deposited, both.jobs) == (failed.start, 40, 2)


def test_free_states_of_the_bank_decide_the_cover() -> None:
    jobs = [a_job(1, state="TIMEOUT"), a_job(2, state="NODE_FAIL", elapsed=1_200)]
    assert [
        allocation.deposited
        for allocation in plan_allocations(jobs, [a_project(1, "chem")], [], LENIENT)
    ] == [80]
    assert [
        allocation.deposited
        for allocation in plan_allocations(jobs, [a_project(1, "chem")], [], CLUSTER)
    ] == [40]


def test_each_gap_between_allocations_is_covered() -> None:
    jobs = [a_job(1, submitted=1_000), a_job(2, submitted=5_000), a_job(3, submitted=9_000)]
    existing = [an_allocation(1, 1, 0, start=4_000, end=6_000)]
    planned = plan_allocations(jobs, [a_project(1, "chem")], existing, CLUSTER)
    assert [(allocation.terms.start, allocation.terms.end) for allocation in planned] == [
        (1_000, 1_001),
        (9_000, 9_001),
    ]


def test_shared_parent_credit_covers_the_history() -> None:
    projects = [a_project(1, "all"), a_project(2, "chem", parent=1)]
    assert (
        plan_allocations([a_job(1)], projects, [an_allocation(1, 1, 0, shared=True)], CLUSTER) == []
    )
    assert len(plan_allocations([a_job(1)], projects, [an_allocation(1, 1, 0)], CLUSTER)) == 1


# --- accounts and associations ---


NOTHING_RAN = {"chem": AccountUsage(), "qmc": AccountUsage(), "bio": AccountUsage()}


def target_accounts(*projects: Any, **more: Any) -> TargetAccounts:
    more = {"associations": TREE, "usage": NOTHING_RAN, **more}
    return TargetAccounts(cluster="lab", projects=projects, now=NOW, **more)


def change_texts(target: TargetAccounts) -> list[str]:
    return [" ".join(change.words) for change in changes_of(target)[0]]


def test_accounts_and_associations_are_added() -> None:
    projects = (a_project(3, "bio", parent=1, members=[101]), a_project(1, "chem", members=[102]))
    assert change_texts(target_accounts(*projects)) == [
        "add account bio cluster=lab description=bio organization=bio parent=chem",
        "add user alice account=bio cluster=lab",
    ]


def test_matching_accounts_are_not_changed() -> None:
    projects = (a_project(1, "chem", members=[102]), a_project(2, "qmc", parent=1, members=[101]))
    assert change_texts(target_accounts(*projects)) == []


def test_account_moves_below_the_parent_project() -> None:
    projects = (a_project(1, "chem"), a_project(2, "qmc"), a_project(3, "bio"))
    moved = (a_project(1, "chem", parent=3), *projects[1:])
    assert "modify account where name=chem cluster=lab set parent=bio" in change_texts(
        target_accounts(*moved)
    )


def test_associations_are_removed_only_with_remove() -> None:
    projects = (a_project(1, "chem"), a_project(2, "qmc", parent=1, members=[101]))
    assert change_texts(target_accounts(*projects)) == []
    assert change_texts(target_accounts(*projects, remove=True)) == [
        "delete user where name=bob account=chem cluster=lab"
    ]


def test_member_through_the_unix_group_has_an_association_and_keeps_it() -> None:
    """bob is one by his group; alice has no association yet."""
    chem = msgspec.structs.replace(a_project(1, "chem"), group_members={101, 102})
    target = target_accounts(chem, a_project(2, "qmc", parent=1, members=[101]), remove=True)
    assert change_texts(target) == ["add user alice account=chem cluster=lab"]


def test_user_of_the_group_whom_the_bank_does_not_list_keeps_the_association() -> None:
    """A directory service may not list the users whose primary group it is."""
    target = target_accounts(
        a_project(1, "chem"), a_project(2, "qmc", parent=1, members=[101]), remove=True
    )
    changes, notes = changes_of(target, {"bob": ["chem", "users"]})
    assert changes == []
    assert notes == [
        "bob keeps the association with chem: on this host they are in its Unix group chem"
    ]
    assert len(changes_of(target, {"bob": ["users"]})[0]) == 1


def test_users_of_a_removed_project_are_removed_with_remove() -> None:
    project = a_project(2, "qmc", members=[101])
    assert change_texts(target_accounts(project, removed=["chem"])) == []
    assert change_texts(target_accounts(project, removed=["chem"], remove=True)) == [
        "delete user where name=bob account=chem cluster=lab"
    ]


def test_no_member_is_removed_while_a_member_has_no_name() -> None:
    changes, notes = changes_of(target_accounts(a_project(1, "chem", members=[999]), remove=True))
    assert changes == []
    assert ["uid 999" in notes[0], "no association is removed" in notes[1]] == [True, True]


def test_limit_in_slurm_leaves_all_available_credit_usable() -> None:
    """Slurm ends running jobs at the limit. So it is the sum of used, running and available
    minutes, those of child accounts included.
    """
    projects = (a_project(1, "chem"), a_project(2, "qmc", parent=1))
    allocations = (
        an_allocation(1, 1, 100, held=7),
        an_allocation(2, 2, 50),
        an_allocation(3, 2, 1_000, state=AllocationState.FROZEN),
    )
    usage = {"chem": AccountUsage(1_199, 3), "qmc": AccountUsage(300, 60)}
    changes = change_texts(
        target_accounts(*projects, allocations=allocations, usage=usage, fence=True)
    )
    assert changes == [
        "modify account where name=chem cluster=lab set GrpTRESMins=billing=177",
        "modify account where name=qmc cluster=lab set GrpTRESMins=billing=115",
    ]


def test_account_of_a_removed_project_is_limited() -> None:
    """Its last limit still allowed jobs. An account that Slurm does not have is not created."""
    known = [a_project(2, "qmc", parent=1)]
    tree = (
        account("root", parent=""),
        account("qmc", "chem", group_limits="billing=0"),
        account("chem", group_limits="cpu=5,billing=900"),
    )
    changes = changes_of(
        target_accounts(*known, associations=tree, removed=["chem", "lab7"], fence=True)
    )[0]
    assert [(" ".join(change.words), change.why) for change in changes] == [
        (
            "modify account where name=chem cluster=lab set GrpTRESMins=billing=0",
            "the project of chem was removed",
        )
    ]
    running = {**NOTHING_RAN, "chem": AccountUsage(120, 30)}
    assert change_texts(
        target_accounts(*known, associations=tree, removed=["chem"], usage=running, fence=True)
    )[0].endswith("set GrpTRESMins=billing=32")
    closed = (*tree[:2], account("chem", group_limits="cpu=5,billing=0"))
    assert (
        change_texts(
            target_accounts(*known, associations=closed, removed=["chem", "lab7"], fence=True)
        )
        == []
    )
    assert change_texts(target_accounts(*known, associations=tree, removed=["chem"])) == []


def test_account_with_hidden_usage_gets_no_limit() -> None:
    """PrivateData hides the usage of others. A limit that ignores their usage would end running
    jobs. A new account has no usage.
    """
    projects = (
        a_project(1, "chem", members=[102]),
        a_project(2, "qmc", parent=1, members=[101]),
        a_project(3, "new"),
    )
    changes, notes = changes_of(
        target_accounts(*projects, usage={"qmc": AccountUsage(60)}, removed=["old"], fence=True)
    )
    assert [
        change.words[3] for change in changes if change.words[-1].startswith("GrpTRESMins")
    ] == ["name=qmc", "name=new"]
    assert [note.partition(":")[0] for note in notes] == ["account chem"]
    tree = (*TREE, account("old", group_limits="billing=900"))
    hidden = target_accounts(associations=tree, usage={}, removed=["old"], fence=True)
    assert changes_of(hidden) == (
        [],
        [
            "account old: sshare does not show its usage, so it gets no limit; run this as root"
            " or as SlurmUser"
        ],
    )


def test_limit_in_slurm_without_credit_is_reached_at_once() -> None:
    """Without `safe`, Slurm starts a job as long as the limit is not reached."""
    assert [AccountUsage(seconds).billing_limit(0) for seconds in (0, 59, 60, 119)] == [0, 0, 1, 1]
    assert [AccountUsage(seconds).billing_limit(5) for seconds in (0, 59, 60, 119)] == [5, 6, 6, 7]


def test_correct_limit_is_not_changed() -> None:
    limited = [SlurmAssociation("chem", group_limits="cpu=1,billing=150", parent="root"), *TREE[3:]]
    target = target_accounts(
        a_project(1, "chem", members=[102]),
        associations=limited,
        allocations=[an_allocation(1, 1, 150)],
        fence=True,
    )
    assert change_texts(target) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("", None), ("billing=5", 5), ("cpu=3,billing=70", 70), ("billing=x", None), ("cpu=9", None)],
)
def test_billing_limit_is_read(text: str, value: int | None) -> None:
    assert billing_limit(SlurmAssociation("x", group_limits=text)) == value
