"""Rights: the owner of a job, operators and root change it; operators and root the cluster.

All users see everything but what PrivateData names, and scripts and environments of others.
"""

from __future__ import annotations

from typing import Literal

from fairbank.core.errors import Forbidden
from fairbank.wlm.core.events import Caller
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.settings import WlmSettings

ROOT_UID = 0
PrivateKind = Literal["accounts", "jobs", "nodes", "partitions", "reservations", "usage", "users"]
"""Words of PrivateData."""


def is_operator(settings: WlmSettings, caller: Caller) -> bool:
    """Return True for root and the configured operators."""
    return caller.uid == ROOT_UID or caller.name in settings.operators


def check_operator(settings: WlmSettings, caller: Caller, action: str) -> None:
    """Raise Forbidden unless an operator makes the request.

    Args:
        settings: settings with the operators.
        caller: user who makes the request.
        action: what they want to do, for the message.
    """
    if not is_operator(settings, caller):
        raise Forbidden(
            f"only operators may {action}", field="user", remedy="ask an operator of the cluster"
        )


def check_owner(settings: WlmSettings, caller: Caller, job: WlmJob) -> None:
    """Raise Forbidden unless the owner of the job or an operator makes the request."""
    if caller.uid != job.submission.uid and not is_operator(settings, caller):
        raise Forbidden(
            f"job {job.name} is of another user",
            field="job",
            remedy="ask its owner or an operator of the cluster",
        )


def may_see(settings: WlmSettings, caller: Caller, kind: PrivateKind, user: str = "") -> bool:
    """Return True if a user may see rows of one kind.

    Args:
        settings: settings with PrivateData.
        caller: user who makes the request.
        kind: kind of the rows. Usage is also that of accounts and the shares.
        user: owner of the row, who sees it always; empty: it belongs to no user.
    """
    is_public = kind not in settings.cluster.private_data
    return is_public or (bool(user) and caller.name == user) or is_operator(settings, caller)
