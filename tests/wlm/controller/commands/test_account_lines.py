"""Associations, users and QOS of the settings as sacctmgr shows them."""

from __future__ import annotations

import pytest

from fairbank.priority.fairshare.tree import ShareAssociation
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord, QosLimits
from fairbank.priority.settings import FairShare, PrioritySettings
from fairbank.report.slurm.sacctmgr import AssociationLine, QosLine, UserLine
from fairbank.wlm.controller.commands.account_lines import (
    LIMIT_FIELDS,
    association_lines,
    qos_lines,
    shown_accounts,
    user_lines,
)
from fairbank.wlm.controller.commands.order_lines import qos_usage_fields, share_lines
from fairbank.wlm.core.accounts import AccountRules
from fairbank.wlm.core.settings import AccountingSettings
from fairbank.wlm.core.state import CoreState
from tests.wlm.config.files import MACHINE_TOML, toml
from tests.wlm.config.test_accounts import ACCOUNTS, QOS
from tests.wlm.core.world import World


def shown(text: str) -> AccountRules:
    settings = toml(MACHINE_TOML + text)
    return shown_accounts(CoreState(settings))


def test_associations_are_in_the_order_of_the_tree() -> None:
    extra = '[[associations]]\naccount = "physics"\nuser = "bob"\nshares = 2\n'
    lines = [*association_lines(shown(ACCOUNTS + extra), "lab")]
    assert [(line.account, line.user, line.depth, line.shares) for line in lines] == [
        ("root", "", 0, 1),
        ("physics", "", 1, 3),
        ("physics", "bob", 1, 2),
        ("optics", "", 2, 1),
        ("optics", "ada", 2, "parent"),
    ]
    physics, ada = lines[1], lines[4]
    assert (physics.grp_tres_mins, physics.max_jobs, physics.parent) == ("cpu=1000", 5, "root")
    assert (ada.partition, ada.parent, ada.cluster) == ("main", "", "lab")


def test_users_have_their_first_account() -> None:
    assert [*user_lines(shown(ACCOUNTS))] == [UserLine("ada", "optics")]


def test_qos_have_limits_and_preemption() -> None:
    settings = toml(MACHINE_TOML + QOS)
    high, low = qos_lines(settings.accounting, settings.scheduling.preemption)
    assert (high.name, high.priority, high.preempts) == ("high", 10, "low")
    assert (high.max_tres_pu, high.grp_jobs, high.max_wall) == ("cpu=16,mem=65536M", 4, 2 * 86_400)
    assert (high.usage_factor, high.usage_threshold) == (2.0, 0.1)
    assert (low.preempt_mode, low.exempt_seconds, low.max_wall) == ("cancel", 300, None)


def test_usage_is_shown_as_limits_count_it() -> None:
    limits = AssociationLimits(tres={LimitKind.GRP_TRES_MINS: {"cpu": 1_000}})
    records = [
        LimitRecord(name="root"),
        LimitRecord(name="bio", parent="root", limits=limits),
        LimitRecord(name="bio", user="alice", parent="bio"),
    ]
    world = World(
        priority=PrioritySettings(fair_share=FairShare(half_life_seconds=0)),
        associations={(one.name, one.user, one.partition): one for one in records},
        shares=(
            ShareAssociation("root"),
            ShareAssociation("bio", parent="root"),
            ShareAssociation("bio", "alice"),
        ),
        enforced=Enforced(limits=True),
        qos={name: QosLimits(name=name, usage_factor=2.0) for name in ("day", "night")},
    )
    world.restart()
    world.run_one(account="bio", qos="night", cpus=4, limit=3_600)
    world.advance(600)
    lines = {(line.account, line.user): line for line in share_lines(world.core.state, world.now)}
    for key in (("root", ""), ("bio", ""), ("bio", "alice")):
        assert lines[key].used.startswith("cpu=80,"), key
        assert lines[key].running.startswith("cpu=200,"), key
        assert lines[key].wall == 20
        assert lines[key].limits == ("cpu=1000" if key == ("bio", "") else "")
    day, night = qos_usage_fields(world.core.state, world.now).values()
    assert (day["usage"], day["wall"], day["used"].startswith("cpu=0,")) == (0, 0, True)
    assert (night["wall"], night["running"]) == (20, lines["bio", ""].running)
    assert night["used"] == lines["bio", ""].used
    assert night["usage"] == lines["bio", ""].usage > 0


def test_root_and_the_default_qos_need_no_settings() -> None:
    settings = toml(MACHINE_TOML)
    assert [*association_lines(shown(""), "lab")] == [
        AssociationLine("root", cluster="lab", number=1)
    ]
    assert [*user_lines(shown(""))] == []
    names = [line.name for line in qos_lines(AccountingSettings(), settings.scheduling.preemption)]
    assert names == ["normal"]


def test_each_limit_has_a_field() -> None:
    assert set(LIMIT_FIELDS) == set(LimitKind)


@pytest.mark.parametrize("field", LIMIT_FIELDS.values())
def test_limit_is_a_field_of_a_line(field: str) -> None:
    assert field in {*AssociationLine._fields, *QosLine._fields}
