"""Rights: the owner of a job, operators and root change it; operators and root the cluster."""

from __future__ import annotations

from fairbank.core.errors import Forbidden
from fairbank.wlm.core.events import Caller
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.settings import CoreSettings

ROOT_UID = 0


def is_operator(settings: CoreSettings, caller: Caller) -> bool:
    """Return True for root and the configured operators."""
    return caller.uid == ROOT_UID or caller.name in settings.operators


def check_operator(settings: CoreSettings, caller: Caller, action: str) -> None:
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


def check_owner(settings: CoreSettings, caller: Caller, job: WlmJob) -> None:
    """Raise Forbidden unless the owner of the job or an operator makes the request."""
    if caller.uid != job.submission.uid and not is_operator(settings, caller):
        raise Forbidden(
            f"job {job.name} is of another user",
            field="job",
            remedy="ask its owner or an operator of the cluster",
        )
