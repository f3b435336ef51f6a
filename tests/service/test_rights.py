"""Refusals for lack of permission: they name the permitted users, and a scope only if it is
missing.
"""

from __future__ import annotations

import msgspec
import pytest

from fairbank.bank.project import Role
from fairbank.cluster.partition import Cluster
from fairbank.core.errors import Forbidden
from fairbank.core.ids import OVERFLOW_UID
from fairbank.service.access.identity import (
    Action,
    Identity,
    VisibleJobs,
    check_allowed,
    check_cluster,
)

READS = frozenset({"read"})


@pytest.mark.parametrize(
    ("identity", "what", "remedy"),
    [
        (Identity(actor=7, uid=7), Action.AUDIT, "ask an admin or superuser"),
        (Identity(actor=7, uid=7, scopes=READS), Action.AUDIT, "ask an admin or superuser"),
        (
            Identity(actor=7, uid=7, roles={1: Role.MEMBER}),
            Action.TRANSFER,
            "ask a pi or superuser",
        ),
        (
            Identity(actor=7, uid=7, roles={1: Role.PI}, scopes=READS),
            Action.TRANSFER,
            "ask a pi or superuser; a token needs the scope 'write'",
        ),
        (Identity(actor=7, uid=7, admin=True), Action.DEPOSIT, "ask a superuser"),
    ],
)
def test_remedy_names_permitted_users_and_missing_scope(
    identity: Identity, what: Action, remedy: str
) -> None:
    with pytest.raises(Forbidden, match=what.value) as error:
        check_allowed(identity, what, 1)
    assert error.value.remedy == remedy


LAB = {"lab": Cluster("lab", {})}
AGENT_OR_TOKEN = "use the cluster's agent, or a token with the scope agent:old"


@pytest.mark.parametrize(
    "identity",
    [
        Identity(actor=7, uid=7, clusters=frozenset({"lab"})),
        Identity(actor=7, uid=7, admin=True),
        Identity(actor=7, uid=7, superuser=True, scopes=READS),
    ],
)
def test_agents_and_staff_learn_which_clusters_the_settings_have(identity: Identity) -> None:
    with pytest.raises(Forbidden, match="cluster old, which the settings do not have") as error:
        check_cluster(identity, "old", LAB)
    assert error.value.remedy == (
        "the settings know: lab; add [clusters.old] with the agent's user in agents,"
        " or a token with the scope agent:old"
    )
    with pytest.raises(Forbidden, match="of cluster old$") as error:
        check_cluster(identity, "old", {"old": Cluster("old", {})})
    assert error.value.remedy == AGENT_OR_TOKEN


def test_other_users_learn_no_clusters_from_a_refused_report() -> None:
    with pytest.raises(Forbidden, match="of cluster old$") as error:
        check_cluster(Identity(actor=7, uid=7, roles={1: Role.PI}), "old", LAB)
    assert error.value.remedy == AGENT_OR_TOKEN


def test_number_of_users_without_a_uid_owns_nothing() -> None:
    """Else its user would see measured use and the jobs of all unknown users as their own."""
    nobody = Identity(actor=OVERFLOW_UID, uid=OVERFLOW_UID, roles={1: Role.MEMBER})
    for visible in VisibleJobs:
        identity = msgspec.structs.replace(nobody, visible_jobs=visible)
        assert (identity.visibility.uid, identity.journal_visibility.uid) == (None, None)
