"""Tests of the bank of a cluster, in a file."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.project import Role
from fairbank.bank.query import Page, ProjectQuery
from fairbank.bank.requests import Amend, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.time import DAY
from fairbank.service.ledger import Ledger
from fairbank.setup.bank_settings import SystemClock, opened_store, settings_of
from fairbank.setup.cluster_bank import PROJECT, add_partitions, create_bank, find_year, grant_year
from fairbank.wlm.config.default_file import MachineSize, default_file
from fairbank.wlm.config.loader import load_settings
from tests.support.conditions import wait_until

MACHINE = load_settings(
    "wlm.toml", lambda name: default_file("ws17", MachineSize(16, 16_000)).encode()
).settings


def test_bank_has_the_users_project_with_a_year_of_all_cpus(tmp_path: Path) -> None:
    settings = create_bank(tmp_path, MACHINE, again=False)
    assert find_year(settings) is None
    year = grant_year(settings, 16)
    assert (year.terms.resource, year.remaining) == ("cpu", 16 * 8_760 * 60)
    assert year.terms.end - year.terms.start in (365 * DAY, 366 * DAY)
    with opened_store(str(settings)) as store, store.reading() as reader:
        (project,) = reader.projects(ProjectQuery(), Page(9))
        members = [(row.uid, row.role) for row in reader.members(project.id, Page(9))]
    assert (project.account, members) == (PROJECT, [(os.getuid(), Role.MEMBER)])


def test_credit_is_renewed_only_when_it_has_ended(tmp_path: Path) -> None:
    settings = create_bank(tmp_path, MACHINE, again=False)
    first = grant_year(settings, 2)
    assert grant_year(settings, 2) == find_year(settings) == first
    end = Amend(
        allocation=first.id, project=first.terms.project, resource="cpu", event=AllocationEvent.END
    )
    now = SystemClock().now()
    with opened_store(str(settings)) as store:
        ledger = Ledger(store, settings_of(str(settings)).policy)
        (outcome,) = ledger.apply([SubmittedRequest(end, now, os.getuid())])
    assert isinstance(outcome, Done)
    wait_until(lambda: SystemClock().now() > now, "the end of the allocation")
    second = grant_year(settings, 2)
    assert second.id != first.id
    assert second.remaining == 2 * 8_760 * 60


def test_settings_follow_the_cluster_and_keep_the_ledger(tmp_path: Path) -> None:
    year = grant_year(create_bank(tmp_path, MACHINE, again=False), 1)
    mixed = (*MACHINE.nodes, Node(name="old", cpus=1, memory=500))
    partitions = (*MACHINE.partitions, PartitionRules(name="long.q", nodes=("ws17",)))
    changed = msgspec.structs.replace(MACHINE, nodes=mixed, partitions=partitions)
    settings = create_bank(tmp_path, changed, again=False)
    settings.write_text(settings.read_text().replace("CPU=1.0", "CPU=2.0", 1))
    assert add_partitions(settings, changed, ["night", "long.q", "no=name"]) == ["night"]
    assert add_partitions(settings, changed, ["night"]) == []
    billed = settings_of(str(settings)).clusters["ws17"].partitions
    prices = {name: partition.weights for name, partition in billed.items()}
    assert prices == {"main": "CPU=2.0", "long.q": "CPU=1.0", "night": "CPU=1.0"}
    create_bank(tmp_path, changed, again=True)
    cluster = settings_of(str(settings)).clusters["ws17"]
    main, long = cluster.partitions.values()
    assert cluster.default_partition == "main"
    assert (main.node_cpus, main.def_mem_per_cpu) == (None, 1_000)
    assert (long.node_cpus, long.node_memory, long.def_mem_per_cpu) == (16, 16_000, None)
    assert find_year(settings) == year


def test_gpus_cost_what_the_partition_says(tmp_path: Path) -> None:
    text = default_file("ws17", MachineSize(16, 16_000, gpus=(("a100", 2), ("t4", 1))))
    text = text.replace("CPU=1.0", "CPU=1.0,GRES/gpu=4.5")
    machine = load_settings("wlm.toml", lambda name: text.encode()).settings
    settings = create_bank(tmp_path, machine, again=False)
    main = settings_of(str(settings)).clusters["ws17"].partitions["main"]
    assert main.weights == "CPU=1.0,gres/gpu=4.5"
    assert main.node_gres == "gpu:a100:2,gpu:t4:1"
