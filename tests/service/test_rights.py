"""Refusals for lack of permission: they name the permitted users, and a scope only if it is
missing.
"""

from __future__ import annotations

import pytest

from fairbank.bank.project import Role
from fairbank.core.errors import Forbidden
from fairbank.service.access.identity import Action, Identity, check_allowed

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
