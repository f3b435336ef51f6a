"""Entry point: an event at a time changes the state and returns effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fairbank.core.errors import FairbankError
from fairbank.wlm.core import events as ev
from fairbank.wlm.core import node_messages
from fairbank.wlm.core.effects import CoreEffect, StoredRow
from fairbank.wlm.core.ends import settle_dependencies
from fairbank.wlm.core.factors.usage import note_associations
from fairbank.wlm.core.jobs import Moment
from fairbank.wlm.core.requests import cluster_requests, job_requests, step_requests, suspensions
from fairbank.wlm.core.requests.job_updates import update
from fairbank.wlm.core.requests.submission import submit
from fairbank.wlm.core.settings import WlmSettings
from fairbank.wlm.core.starts import carry_out, connect_agent, take_accounts, take_verdict
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.steps import changes as step_changes
from fairbank.wlm.core.timers import fire, set_all_timers
from fairbank.wlm.core.transition import AGENT, Transition

_REQUESTS: Mapping[type, Callable[[Transition, ev.Caller, Any], object]] = {
    ev.SubmitJob: submit,
    ev.UpdateJob: update,
    ev.HoldJob: job_requests.hold,
    ev.ReleaseJob: job_requests.release,
    ev.RequeueJob: job_requests.requeue,
    ev.CancelJob: job_requests.cancel,
    ev.SuspendJob: suspensions.suspend,
    ev.ResumeJob: suspensions.resume,
    ev.SendSignal: job_requests.signal,
    ev.SendNotice: job_requests.notify,
    ev.TopJob: job_requests.move_to_top,
    ev.CompleteJob: step_requests.complete_job,
    ev.ChangeOwner: step_requests.change_owner,
    ev.CreateStep: step_requests.create,
    ev.EndStepOf: step_requests.end,
    ev.UpdateNode: cluster_requests.update_node,
    ev.UpdatePartition: cluster_requests.update_partition,
    ev.DeletePartition: cluster_requests.delete_partition,
    ev.SetReservation: cluster_requests.set_reservation,
    ev.DeleteReservation: cluster_requests.delete_reservation,
}
_MESSAGES: Mapping[type, Callable[[Transition, Any], None]] = {
    ev.NodeRegistered: node_messages.register,
    ev.NodeDisconnected: lambda tx, event: tx.state.set_registered(event.node, is_registered=False),
    ev.NodeSilent: node_messages.silence,
    ev.RunChanged: node_messages.record_change,
    ev.StepChanged: step_changes.record_change,
    ev.OwnerLost: step_requests.end_without_owner,
    ev.VerdictGiven: take_verdict,
    ev.MessageAcknowledged: lambda tx, event: tx.put("messages", event.message, None),
    ev.AgentConnected: connect_agent,
    ev.AccountsRead: take_accounts,
    ev.PlanMade: carry_out,
    ev.TimerFired: fire,
}


class Core:
    """State machine of the cluster.

    The caller carries out the effects of an event in their order, and the effects of one event
    before those of the next. It answers `RequestPlan` with a pass over the state and PlanMade.
    """

    def __init__(self, settings: WlmSettings) -> None:
        self.state = CoreState(settings)

    def load(self, rows: Iterable[StoredRow], now: Moment) -> list[CoreEffect]:
        """Take over the rows that an earlier core stored, before the first event.

        The effects set the timers, repeat the messages that the agent has not acknowledged, and
        request a pass. Nodes register again by themselves.
        """
        self.state.load(rows)
        tx = Transition(self.state, now)
        cluster_requests.settle_partitions(tx)
        note_associations(tx)
        set_all_timers(tx)
        for _, message in sorted(self.state.messages.items()):
            tx.send(AGENT, message)
        settle_dependencies(tx)
        tx.request_plan()
        return tx.effects()

    def handle(self, event: ev.CoreEvent, now: Moment) -> list[CoreEffect]:
        """Change the state by an event, and return the effects.

        A request that is refused changes nothing; its only effect is the reply with the error. An
        error of the core itself is raised, and changes nothing either.
        """
        tx = Transition(self.state, now)
        try:
            if isinstance(event, ev.RequestMade):
                _answer(tx, event)
            else:
                _MESSAGES[type(event)](tx, event)
                settle_dependencies(tx)
        except BaseException:
            tx.roll_back()
            raise
        return tx.effects()


def _answer(tx: Transition, event: ev.RequestMade) -> None:
    """Carry out a request and reply, with the error if it is refused."""
    body = event.body
    answer: object
    try:
        answer = _REQUESTS[type(body)](tx, event.caller, body)
        settle_dependencies(tx)
    except FairbankError as error:
        answer = error
    if isinstance(answer, FairbankError) or (isinstance(body, ev.SubmitJob) and body.test_only):
        tx.roll_back()
    tx.reply(event.number, answer)
