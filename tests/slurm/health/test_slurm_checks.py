"""Checks of the doctor on recorded Slurm output, unchanged and with one error."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.errors import InvalidInput
from fairbank.core.time import iso, parse_instant
from fairbank.core.tres import BillingRule, parse_weights
from fairbank.slurm.health import slurm_checks
from fairbank.slurm.health.slurm_checks import AgentHealth, PolicyFileHealth
from fairbank.slurm.parsers import config, machine, sacctmgr
from fairbank.slurm.reconcile.prices import SlurmMachine
from tests.slurm.health.recorded_health import CONFIG, failed_checks, recorded

WITH_PLUGINS = {
    **CONFIG,
    "PrEpPlugins": "prep/fairbank,prep/script",
    "PrEpParameters": "fairbank_socket=/run/fairbank-agent/prep.sock",
    "JobSubmitPlugins": "lua",
    "CliFilterPlugins": "lua",
}
MACHINE = SlurmMachine(
    cluster="lab",
    partitions=machine.read_partitions(recorded("partitions-oneliner")).rows,
    nodes=machine.read_nodes(recorded("nodes-oneliner")).rows,
    qos=sacctmgr.QOS.read(recorded("qos-plain")).rows,
    flags=CONFIG["PriorityFlags"],
)
FACTORS = {qos.name: Fraction(qos.factor) for qos in MACHINE.qos}
STATUS: dict[str, Any] = {
    "plugins": [{"slurm": "22.05.8", "cluster": "lab"}],
    "bank": {"reachable": True, "error": None, "remedy": None},
    "outbox": {"reports": 0, "error": None},
    "quarantine": {
        "frames": 0,
        "last": None,
        "path": "/x/outbox.quarantine",
        "remedy": "one release",
    },
}
AGENT = AgentHealth(
    socket="/run/fairbank-agent/prep.sock",
    slurm_users=frozenset({0, 64030}),
    patience=10.0,
    status=STATUS,
)
NOW = 1_795_000_000
POLICY = PolicyFileHealth(
    path="/etc/slurm/fairbank/policy",
    written=1_000,
    is_whole=True,
    is_readable=True,
    stale_seconds=3600,
)


def bank_prices(adding: BillingRule = BillingRule.MAX_TRES) -> Cluster:
    """Return bank prices equal to Slurm's."""
    return Cluster(
        "lab",
        {
            partition.name: Partition(
                partition.name, "cpu", parse_weights(partition.weights or "cpu=1"), adding
            )
            for partition in MACHINE.partitions
        },
        FACTORS,
    )


def with_partition(machine: SlurmMachine, name: str, **facts: object) -> SlurmMachine:
    """Return the machine with changed fields of one partition."""
    partitions = tuple(
        msgspec.structs.replace(partition, **facts) if partition.name == name else partition
        for partition in machine.partitions
    )
    return msgspec.structs.replace(machine, partitions=partitions)


def test_complete_installation_has_no_failed_check() -> None:
    checks = [
        slurm_checks.clock_check(100, 103, "slurmctld"),
        slurm_checks.authentication_check(CONFIG),
        *slurm_checks.accounting_checks(CONFIG, MACHINE),
        *slurm_checks.billing_weights(MACHINE, bank_prices()),
        *slurm_checks.price_checks(MACHINE, bank_prices()),
        *slurm_checks.limit_checks(MACHINE.partitions),
        *slurm_checks.plugin_checks(WITH_PLUGINS, AGENT),
        *slurm_checks.agent_checks(WITH_PLUGINS, AGENT, NOW),
        *slurm_checks.policy_checks(POLICY, 4_600),
    ]
    assert failed_checks(checks) == []
    texts = [check.what for check in checks]
    assert "the bank prices 3 partitions as Slurm bills them (max_tres)" in texts
    assert "slurmctld is connected to the agent: 22.05.8" in texts
    assert "the agent accepts the users 0, 64030; SlurmUser is slurm(64030)" in texts


def with_sizes(known: Cluster) -> Cluster:
    """Return the bank's prices with the node sizes and default memory that Slurm reports."""
    sizes = {
        "cpu": NodeSize(64, 131_072, {}),
        "gpu": NodeSize(48, 512_000, {"gres/gpu": 4, "gres/gpu:a100": 4}),
        "gpu-t4": NodeSize(64, 131_072, {"gres/gpu": 4, "gres/gpu:t4": 4}),
    }
    partitions = {
        name: msgspec.structs.replace(
            partition, size=sizes[name], default_memory=Memory(1000, MemoryUnit.CPU)
        )
        for name, partition in known.partitions.items()
    }
    return msgspec.structs.replace(known, partitions=partitions, default_partition="cpu")


def test_sizes_like_slurms_have_no_failed_check() -> None:
    assert failed_checks(slurm_checks.size_checks(MACHINE, with_sizes(bank_prices()))) == []


def test_missing_and_other_sizes_are_reported() -> None:
    known = with_sizes(bank_prices())
    partitions = {
        **known.partitions,
        "cpu": msgspec.structs.replace(
            known.partitions["cpu"], size=NodeSize(64, 1_000, None), default_memory=None
        ),
    }
    changed = msgspec.structs.replace(known, partitions=partitions, default_partition="gpu")
    assert failed_checks(slurm_checks.size_checks(MACHINE, changed)) == [
        "partition cpu: node_memory is 131072 at Slurm, and the bank's settings have 1000",
        'partition cpu: node_gres is "" at Slurm, and the bank\'s settings lack it',
        "partition cpu: default memory is def_mem_per_cpu = 1000 at Slurm, and the bank's settings"
        " lack it",
        "default_partition is cpu at Slurm, and the bank's settings have gpu",
    ]


def test_partition_that_gives_whole_nodes_only_at_one_side_is_reported() -> None:
    known = with_sizes(bank_prices())
    changed = {"cpu": msgspec.structs.replace(known.partitions["cpu"], exclusive=True)}
    ours = msgspec.structs.replace(known, partitions={**known.partitions, **changed})
    assert failed_checks(slurm_checks.size_checks(MACHINE, ours)) == [
        "partition cpu: exclusive is false at Slurm, and the bank's settings have true"
    ]
    partitions = [
        msgspec.structs.replace(partition, exclusive=partition.name == "cpu")
        for partition in MACHINE.partitions
    ]
    machine = msgspec.structs.replace(MACHINE, partitions=partitions)
    assert failed_checks(slurm_checks.size_checks(machine, ours)) == []
    assert failed_checks(slurm_checks.size_checks(machine, known)) == [
        "partition cpu: exclusive is true at Slurm, and the bank's settings lack it"
    ]


def test_partition_whose_nodes_differ_is_named_and_is_no_fault() -> None:
    """Of the six nodes of cpu two have twice the memory: the settings should have the largest."""
    nodes = [
        msgspec.structs.replace(node, size=NodeSize(64, 262_144, {}))
        if node.name in ("c01", "c02")
        else node
        for node in MACHINE.nodes
    ]
    machine = msgspec.structs.replace(MACHINE, nodes=nodes)
    checks = list(slurm_checks.size_checks(machine, with_sizes(bank_prices())))
    assert failed_checks(checks) == [
        "partition cpu: node_memory is 262144 at Slurm, and the bank's settings have 131072"
    ]
    assert (
        "partition cpu: its nodes differ: 4 with 64 CPUs, 131072 MiB; 2 with 64 CPUs, 262144 MiB;"
        " quotes of whole nodes count the largest"
    ) in [check.what for check in checks if check.ok]


def test_default_partition_where_the_policy_requires_one_is_reported() -> None:
    known = with_sizes(bank_prices())
    assert not list(slurm_checks.default_partition_checks(known, required=False))
    (check,) = slurm_checks.default_partition_checks(known, required=True)
    assert (check.ok, check.remedy) == (
        False,
        "remove clusters.lab.default_partition, and restart the bank",
    )


def test_bank_may_have_default_memory_where_slurm_has_none() -> None:
    machine = msgspec.structs.replace(MACHINE, default_memory=Memory(0))
    for partition in MACHINE.partitions:
        machine = with_partition(machine, partition.name, default_memory=None)
    assert failed_checks(slurm_checks.size_checks(machine, with_sizes(bank_prices()))) == []


@pytest.mark.parametrize(
    ("settings", "memory"),
    [
        ({"DefMemPerCPU": "2000"}, Memory(2000, MemoryUnit.CPU)),
        ({"DefMemPerNode": "64000"}, Memory(64_000)),
        ({"DefMemPerNode": "UNLIMITED", "SelectTypeParameters": "CR_CORE_MEMORY"}, Memory(0)),
        ({"DefMemPerNode": "UNLIMITED", "SelectTypeParameters": "CR_CORE"}, None),
        ({}, None),
    ],
)
def test_default_memory_of_the_cluster_is_read(
    settings: dict[str, str], memory: Memory | None
) -> None:
    assert config.read_default_memory(settings) == memory


@pytest.mark.parametrize(
    ("other_clock", "expected"),
    [
        (1_006, "the clock of the bank is 6 s from this host's, ahead of ours"),
        (994, "the clock of the bank is 6 s from this host's, behind ours"),
    ],
)
def test_wrong_clock_is_reported(other_clock: int, expected: str) -> None:
    assert failed_checks([slurm_checks.clock_check(1_000, other_clock, "the bank")]) == [expected]


def test_slurmctlds_clock_is_read_from_its_answer() -> None:
    assert config.read_clock(recorded("config")) == parse_instant("2026-11-21T14:17:50Z")
    with pytest.raises(InvalidInput, match="does not begin with its time"):
        config.read_clock("slurm_load_ctl_conf error: Unable to contact slurm controller\n")


def test_unusable_accounting_is_reported() -> None:
    lacking = {
        **CONFIG,
        "AccountingStorageType": "accounting_storage/none",
        "AccountingStorageTRES": "cpu,mem,energy,node,billing",
    }
    assert failed_checks(slurm_checks.accounting_checks(lacking, MACHINE)) == [
        "accounting is stored by none",
        "GPUs in accounting: no",
    ]
    assert (
        failed_checks(
            slurm_checks.accounting_checks(
                {**lacking, "AccountingStorageType": CONFIG["AccountingStorageType"]},
                SlurmMachine(cluster="lab", partitions=()),
            )
        )
        == []
    )


def test_accounts_that_need_not_exist_are_reported() -> None:
    def failed(enforced: str) -> list[str]:
        config = {**CONFIG, "AccountingStorageEnforce": enforced}
        return failed_checks(slurm_checks.accounting_checks(config, MACHINE))

    assert failed("none") == ["accounts of jobs must exist: AccountingStorageEnforce=none"]
    assert failed("nosteps,nojobs") == [
        "accounts of jobs must exist: AccountingStorageEnforce=nosteps,nojobs"
    ]
    assert failed("associations") == failed("Limits") == failed("qos,safe") == []


def test_daemons_without_authentication_are_reported() -> None:
    assert failed_checks(
        [slurm_checks.authentication_check({**CONFIG, "AuthType": "auth/none"})]
    ) == ["Slurm signs by auth/none"]


def test_summed_tres_are_reported() -> None:
    summing = msgspec.structs.replace(MACHINE, flags="")
    assert failed_checks(slurm_checks.billing_weights(summing, bank_prices())) == [
        "PriorityFlags: no MAX_TRES, a GPU and its cores cost both"
    ]
    assert (
        failed_checks(slurm_checks.billing_weights(summing, bank_prices(BillingRule.SUM))) == []
    )  # intended if the bank has the same rule
    assert len(failed_checks(slurm_checks.price_checks(summing, bank_prices()))) == 3


def test_suggested_file_name_of_a_cluster_is_quoted() -> None:
    """Slurm takes $ in the name of a cluster."""
    other = msgspec.structs.replace(with_partition(MACHINE, "gpu", weights="CPU=1.0"), cluster="$a")
    checks = [
        *slurm_checks.price_checks(other, bank_prices()),
        *slurm_checks.size_checks(other, bank_prices()),
    ]
    remedies = [check.remedy or "" for check in checks if not check.ok]
    assert remedies
    assert all("--settings '$a.toml' prints" in remedy for remedy in remedies)


def test_missing_or_different_weights_are_reported() -> None:
    cheap = with_partition(MACHINE, "gpu", weights="CPU=1.0")
    assert failed_checks(slurm_checks.billing_weights(cheap, bank_prices())) == [
        "partition gpu has GPUs, and they cost nothing"
    ]
    assert failed_checks(slurm_checks.price_checks(cheap, bank_prices())) == [
        "partition gpu: Slurm's weights are CPU=1.0; the bank's settings have others"
    ]


def test_partition_without_limit_is_reported() -> None:
    (line,) = [
        text
        for text in recorded("partitions-oneliner").splitlines()
        if text.startswith("PartitionName=cpu ")
    ]
    endless = machine.read_partitions(
        line.replace("MaxTime=7-00:00:00", "MaxTime=UNLIMITED") + "\n"
    ).rows
    assert failed_checks(slurm_checks.limit_checks(endless)) == [
        "partition cpu has no finite MaxTime: jobs without a limit are refused, or run without a"
        " hold"
    ]
    assert {place.max_minutes for place in MACHINE.partitions} == {7 * 24 * 60}


def test_slurm_without_plugins_is_reported() -> None:
    assert failed_checks(slurm_checks.plugin_checks(CONFIG, AGENT)) == [
        "slurmctld does not ask before a job starts: PrEpPlugins=prep/script",
        "slurmctld: JobSubmitPlugins=(none)",
        "submit commands: CliFilterPlugins=(none)",
    ]


def test_ends_that_a_restart_would_lose_are_named_while_no_agent_is_connected() -> None:
    status = {**AGENT.status, "plugins": []}
    for agent in (None, msgspec.structs.replace(AGENT, status=status)):
        (check,) = [
            result for result in slurm_checks.plugin_checks(WITH_PLUGINS, agent) if not result.ok
        ]
        assert "more than 300 s (MinJobAge) before are lost" in check.what
        assert "fairbank reconcile --fix" in (check.remedy or "")


SCRIPT = "/etc/slurm/prolog_slurmctld"
BY_SCRIPT = {**WITH_PLUGINS, "PrEpPlugins": "prep/script", "PrologSlurmctld": SCRIPT}
BY_AGENT = {**BY_SCRIPT, "PrologSlurmctld": "/etc/slurm/prolog_with_agent"}


def test_prolog_script_replaces_the_plugin() -> None:
    assert slurm_checks.prolog_script(BY_SCRIPT) == SCRIPT
    several = {
        "PrologSlurmctld[0]": "/etc/slurm/clean_up",
        "PrologSlurmctld[1]": SCRIPT,
    }  # as 24.11 prints them
    assert slurm_checks.prolog_script({"PrEpPlugins": "prep/script", **several}) == SCRIPT
    assert failed_checks(slurm_checks.plugin_checks(BY_SCRIPT, None)) == []
    others = {**BY_SCRIPT, "PrologSlurmctld": "/etc/slurm/clean_up"}
    assert slurm_checks.prolog_script(others) == ""
    assert [slurm_checks.needs_agent(config) for config in (BY_SCRIPT, BY_AGENT, others)] == [
        False, True, True,
    ]  # fmt: skip


def test_script_that_asks_the_agent_connects_only_when_a_job_starts() -> None:
    bank = {"reachable": None, "error": None, "remedy": None}
    status = {**STATUS, "plugins": [], "bank": bank}
    agent = msgspec.structs.replace(AGENT, status=status)
    assert failed_checks(slurm_checks.agent_checks(BY_AGENT, agent, NOW)) == []
    assert failed_checks(slurm_checks.plugin_checks(BY_AGENT, agent)) == []


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (
            "fairbank_socket=/elsewhere",
            "socket of the agent: /run/fairbank-agent/prep.sock; of the plug-in: /elsewhere",
        ),
        (
            "fairbank_poll_interval=1,fairbank_patience=10",
            "the plug-in waits 10 s for the agent, the agent 10 s for the bank",
        ),
    ],
)
def test_plugin_and_agent_settings_must_match(parameters: str, expected: str) -> None:
    assert failed_checks(
        slurm_checks.plugin_checks({**WITH_PLUGINS, "PrEpParameters": parameters}, AGENT)
    ) == [expected]
    absent = slurm_checks.plugin_checks({**WITH_PLUGINS, "PrEpParameters": parameters}, None)
    assert expected not in failed_checks(absent)


def test_agent_faults_are_reported() -> None:
    bank = {
        "reachable": False,
        "error": "you may not report runs of lab",
        "remedy": "agents = [64030] under [clusters.lab]",
    }
    quarantine = {
        "frames": 3,
        "last": "epilog: 'x' is not known here (key)",
        "path": "/x/aside",
        "remedy": "one release",
    }
    outbox = {"reports": 7, "retry_later": 2, "error": "disk full"}
    status = {
        "plugins": [{"slurm": "22.05.8", "cluster": "other"}],
        "bank": bank,
        "outbox": outbox,
        "quarantine": quarantine,
    }
    checks = list(
        slurm_checks.agent_checks(
            WITH_PLUGINS,
            msgspec.structs.replace(AGENT, status=status, slurm_users=frozenset({0})),
            NOW,
        )
    )
    assert failed_checks(checks) == [
        "the agent accepts the users 0; SlurmUser is slurm(64030)",
        "slurmctld is connected to the agent: no",
        "the agent's connection to the bank: you may not report runs of lab",
        "the agent's outbox: cannot be written: disk full",
        "the agent's ends: 2 are too early for the bank's clock, and sent again later",
        (
            "messages of slurmctld's plug-in that the agent cannot read: 3, the last: epilog: 'x'"
            " is not known here (key); they are in /x/aside"
        ),
    ]
    assert "agents = [64030] under [clusters.lab]" in [check.remedy for check in checks]


def test_agent_before_its_first_request_to_the_bank() -> None:
    status = {**STATUS, "bank": {"reachable": None, "error": None, "remedy": None}}
    (check,) = [
        check
        for check in slurm_checks.agent_checks(
            WITH_PLUGINS, msgspec.structs.replace(AGENT, status=status), NOW
        )
        if not check.ok
    ]
    assert check.what == "the agent's connection to the bank: not tried yet"
    assert "plug-in has named the cluster" in (check.remedy or "")


def test_agent_incidents_are_reported_for_a_day() -> None:
    rejected = {
        "kind": "stranger",
        "about": "rejected connections",
        "count": 3,
        "since": NOW - 90_000,
        "last": NOW - 60,
    }
    incident = rejected | {
        "text": "connection from uid 1000 rejected",
        "remedy": "check the process",
    }
    agent = msgspec.structs.replace(AGENT, status={**STATUS, "incidents": [incident]})
    (check,) = [
        check for check in slurm_checks.agent_checks(WITH_PLUGINS, agent, NOW) if not check.ok
    ]
    assert (
        check.what == f"the agent reports rejected connections: 3 since {iso(NOW - 90_000)},"
        f" the last at {iso(NOW - 60)}: connection from uid 1000 rejected"
    )
    assert check.remedy == "check the process"
    assert (
        failed_checks(
            slurm_checks.agent_checks(WITH_PLUGINS, agent, NOW + slurm_checks.INCIDENT_SECONDS)
        )
        == []
    )


def test_old_agent_is_reported() -> None:
    status = {name: value for name, value in STATUS.items() if name != "quarantine"}
    assert failed_checks(
        slurm_checks.agent_checks(WITH_PLUGINS, msgspec.structs.replace(AGENT, status=status), NOW)
    ) == ["the agent is older than this command"]


def test_old_damaged_or_unreadable_policy_is_reported() -> None:
    old = msgspec.structs.replace(POLICY, is_whole=False, is_readable=False)
    assert failed_checks(slurm_checks.policy_checks(old, 4_601)) == [
        "/etc/slurm/fairbank/policy is damaged: jobs are not checked",
        (
            "/etc/slurm/fairbank/policy is of 1970-01-01T00:16:40Z, more than 3600 s ago: its"
            " balances are not used"
        ),
        "slurmctld's user may not read /etc/slurm/fairbank/policy",
    ]


def test_reports_of_a_denied_cluster_are_reported_with_their_remedy() -> None:
    denied = {"cluster": "old", "reports": 3, "error": "not allowed", "remedy": "add the agent"}
    agent = msgspec.structs.replace(AGENT, status={**STATUS, "denied": [denied]})
    (check,) = [
        check for check in slurm_checks.agent_checks(WITH_PLUGINS, agent, NOW) if not check.ok
    ]
    assert check.what == "the agent has set aside 3 reports of cluster old: not allowed"
    assert check.remedy == "add the agent"
