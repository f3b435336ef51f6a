"""Tables that only wlm.toml has: operators, bank, QOS, associations."""

from __future__ import annotations

import pytest

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.tree import ShareAssociation, build_tree
from fairbank.priority.limits.reasons import LimitKind
from fairbank.scheduling.machines.nodes import PreemptBy, QosRules
from tests.wlm.config.files import MACHINE_TOML, TOML, toml, toml_error

QOS = """
[scheduling]
preempt_type = "preempt/qos"
preempt_mode = "REQUEUE"
[[qos]]
name = "high"
priority = 10
preempt = ["low"]
flags = ["DenyOnLimit", "NoDecay"]
max_tres_per_user = "cpu=16,mem=64G"
grp_jobs = 4
max_wall = "2-0"
usage_factor = 2
usage_threshold = 0.1
[[qos]]
name = "low"
preempt_mode = "CANCEL"
preempt_exempt_time = "5"
"""
ACCOUNTS = """
[[associations]]
account = "physics"
shares = 3
grp_tres_mins = "cpu=1000"
max_jobs = 5
[[associations]]
account = "optics"
parent = "physics"
[[associations]]
account = "optics"
user = "ada"
partition = "main"
shares = "parent"
"""


def test_operators_and_bank_are_read() -> None:
    settings = toml(
        'operators = ["ada", "root"]\n[bank]\nagent = "/run/agent"\nwithout_agent = "hold"\n'
        '[scheduling]\nnode_resources = "actual"\n' + MACHINE_TOML
    )
    assert settings.operators == {"ada", "root"}
    assert (settings.bank.socket, settings.bank.holds_without_agent) == ("/run/agent", True)
    assert settings.scheduling.actual_resources


def test_qos_have_limits_and_rules_of_preemption() -> None:
    settings = toml(QOS + MACHINE_TOML)
    high, low = settings.accounting.qos.values()
    assert high.limits.tres == {LimitKind.MAX_TRES_PER_USER: {"cpu": 16, "mem": 65_536}}
    assert high.limits.jobs == {LimitKind.GRP_JOBS: 4}
    assert high.limits.wall == {LimitKind.MAX_WALL: 2_880}
    assert (high.usage_factor, high.deny_on_limit, low.deny_on_limit) == (2.0, True, False)
    assert settings.accounting.qos_flags == {"high": {"DenyOnLimit", "NoDecay"}}
    assert settings.accounting.usage_thresholds == {"high": 0.1}
    preemption = settings.scheduling.preemption
    assert (preemption.by, preemption.mode) == (PreemptBy.QOS, PreemptMode.REQUEUE)
    assert preemption.qos == {
        "high": QosRules(priority=10, preempts=frozenset({"low"})),
        "low": QosRules(preempted=PreemptMode.CANCEL, exempt_seconds=300),
    }


def test_associations_have_the_qos_of_the_next_account_above() -> None:
    text = QOS + ACCOUNTS.replace("shares = 3", 'shares = 3\nqos = "low,high"')
    allowed = toml(text + MACHINE_TOML).accounting.allowed_qos
    assert set(allowed.values()) == {("low", "high")}
    assert set(allowed) == {("physics", "", ""), ("optics", "", ""), ("optics", "ada", "main")}


def test_associations_have_limits_and_shares_below_root() -> None:
    accounting = toml(ACCOUNTS + MACHINE_TOML).accounting
    assert accounting.shares == (
        ShareAssociation("root"),
        ShareAssociation("physics", parent="root", shares=3),
        ShareAssociation("optics", parent="physics"),
        ShareAssociation("optics", "ada", "main", shares=ON_PARENT),
    )
    assert build_tree(accounting.shares).rows == accounting.shares
    physics, optics, ada = accounting.associations.values()
    assert physics.limits.tres == {LimitKind.GRP_TRES_MINS: {"cpu": 1_000}}
    assert physics.limits.jobs == {LimitKind.MAX_JOBS: 5}
    assert (physics.parent, optics.parent, ada.parent, ada.user) == (
        "root", "physics", "optics", "ada",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[qos]]\npriority = 1", "line 1, priority: name is missing"),
        ("[[qos]]\nname = 'a'\n[[qos]]\nname = 'a'", "line 4, name: a is there twice"),
        ("[[qos]]\nname = 'a'\npreempt = 'b'", "line 3, preempt: there is no QOS b"),
        ("[[qos]]\nname = 'a'\npreempt = 'a'", "line 3, preempt: QOS preempt each other in a"),
        ("[[qos]]\nname = 'a'\ngrp_tres = 'cpu'", "line 3, grp_tres: 'cpu' is not NAME=NUMBER"),
        ("[[qos]]\nname = 'a'\nusage_factor = nan", "line 3, usage_factor: 'nan' is not a"),
        ("[[qos]]\nname = 'a'\nmax_jobs = 3", "line 3, max_jobs: is not a keyword here"),
        ("[[associations]]\nuser = 'a'", "line 1, user: account is missing"),
        ("[[associations]]\naccount = 'a'\nuser = 'u'", "line 2, account: there is no account a"),
        ("[[associations]]\naccount = 'a'\nparent = 'b'", "line 3, parent: there is no account b"),
        ("[[associations]]\naccount = 'a'\nparent = 'a'", "line 2, account: row 2 (account a)"),
        ("[[associations]]\naccount = 'a'\nqos = 'q'", "line 3, qos: there is no QOS q"),
        ("[[associations]]\naccount = 'a'\nshares = -1", "line 3, shares: '-1' is not a whole"),
        ("[[associations]]\naccount = 'a'\n" * 2, "line 4, account: this association is there"),
    ],
    ids=lambda text: text.partition(": ")[2].partition(" (")[0] if text.startswith("line") else "",
)
def test_bad_account_is_named(text: str, message: str) -> None:
    assert toml_error(f"{text}\n{MACHINE_TOML}").message.startswith(f"{TOML}, {message}")
