"""Random histories: users, operators, nodes, verdicts, clocks and restarts against the world, which
checks the invariants W1 to W9 after each step.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fairbank.cluster.job import Run
from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules, PartitionState, PreemptMode
from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import FairbankError, Forbidden
from fairbank.core.time import Instant
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, QosLimits
from fairbank.priority.settings import MultifactorSettings, PrioritySettings, PriorityWeights
from fairbank.scheduling.machines.nodes import PreemptBy, Preemption
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.node_states import NodeEvent
from tests.wlm.core.world import (
    ALICE,
    BOB,
    OPERATOR,
    STAGES,
    Action,
    ModelNode,
    World,
    named,
    run_status,
)

PICK = st.integers(0, 50)
MAIN = PartitionRules(name="main", is_default=True, max_seconds=3_600)
URGENT = PartitionRules(name="urgent", tier=5, max_seconds=3_600, grace_seconds=0)
LIMITED = QosLimits(name="normal", limits=AssociationLimits(tres={LimitKind.GRP_TRES: {"cpu": 6}}))
CALLERS = st.sampled_from([ALICE, ALICE, ALICE, BOB, OPERATOR])
KINDS = ["afterok", "afternotok", "afterany", "after", "aftercorr", "singleton"]
STEPS = ["begin", "begin", "begin", "end", "end", "fail", "clear", "clear", "clear", "launch",
         "prolog", "unkillable", "repeat"]  # fmt: skip
ACTIONS = ["hold", "release", "cancel", "requeue", "requeuehold", "special", "top", "limit",
           "signal", "notify", "priority", "eligible", "suspend", "resume"]  # fmt: skip
VERDICTS = st.sampled_from(["run", "run", "hold", "cancel"])
WORKS = st.tuples(PICK, st.sampled_from(STEPS), st.sampled_from([0, 0, 1, 7, 8]))
FAULTS = ["silence", "register", "register", "boot", "lacking", "node", "node", "node",
          "partition", "partition", "create", "delete", "reserve", "reserve", "unreserve",
          "compute_plan",
          "carry_out_old_plan", "carry_out_old_plan", "restart", "crash", "agent"]  # fmt: skip
FACTORS = PrioritySettings(
    factors=MultifactorSettings(weights=PriorityWeights(age=1_000, fairshare=1_000, job_size=100))
)
ADMINISTRATION = [NodeEvent.RESUMED, NodeEvent.RESUMED, NodeEvent.DRAINED, NodeEvent.DOWN,
                  NodeEvent.FAILED, NodeEvent.FUTURE]  # fmt: skip


class Histories(RuleBasedStateMachine):
    """A world in which anything happens at any time.

    Some rules do the common thing in one step, such as a pass whose starts all begin, and faults
    share one rule: else few histories would get far.
    """

    @initialize(
        has_bank=st.booleans(),
        preempts=st.sampled_from([PreemptMode.OFF, PreemptMode.CANCEL, PreemptMode.REQUEUE]),
        grace=st.sampled_from([0, 30]),
        service=st.integers(0, 2),
        complete_wait=st.sampled_from([0, 0, 20]),
        has_limit=st.booleans(),
    )
    def begin(
        self,
        has_bank: bool,
        preempts: PreemptMode,
        grace: int,
        service: int,
        complete_wait: int,
        has_limit: bool,
    ) -> None:
        by = PreemptBy.NONE if preempts is PreemptMode.OFF else PreemptBy.PARTITION
        main = (
            MAIN
            if not grace
            else PartitionRules(
                name="main", is_default=True, max_seconds=3_600, grace_seconds=grace
            )
        )
        self.world = World(
            main,
            URGENT,
            nodes=3,
            socket="agent" if has_bank else "",
            preemption=Preemption(by=by, mode=preempts),
            return_to_service=service,
            complete_wait=complete_wait,
            requeue_exit=frozenset({7}),
            requeue_exit_hold=frozenset({8}),
            min_job_age=300,
            batch_start_timeout=60,
            priority=FACTORS,
            qos={"normal": LIMITED},
            enforced=Enforced(limits=has_limit),
        )
        self.world.restart()
        self.plans: list[ev.PlanMade] = []
        self.gone: list[ev.RunChanged] = []
        for cpus, requeues in ((2, True), (3, False), (4, True)):
            self.world.submit(cpus=cpus, may_requeue=requeues)
        self.plan(True)

    # --- users

    @rule(
        caller=st.sampled_from([ALICE, BOB]),
        cpus=st.integers(1, 4),
        nodes=st.sampled_from([1, 1, 1, 2, 3]),
        limit=st.sampled_from([60, 600, 3_600]),
        partition=st.sampled_from(["", "", "urgent", "night"]),
        delay=st.sampled_from([0, 0, 0, 100]),
        deadline=st.sampled_from([None, None, None, 700]),
        array=st.sampled_from([None, None, None, "0-3%2", "1,5"]),
        flags=st.sets(st.sampled_from(["held", "no_kill", "kill_invalid"]), max_size=1),
        may_requeue=st.booleans(),
        kind=st.sampled_from(KINDS),
        parent=st.none() | PICK,
        reservation=st.sampled_from([None, None, None, "maint"]),
    )
    def submit(
        self,
        caller: ev.Caller,
        partition: str,
        delay: int,
        deadline: int | None,
        flags: set[str],
        kind: str,
        parent: int | None,
        **fields: Any,
    ) -> None:
        world, wall = self.world, self.world.now.wall
        parents = list(world.core.state.jobs)
        dependency, parent_job = None, None
        if parent is not None and parents:
            parent_job = parents[parent % len(parents)]
            dependency = kind if kind == "singleton" else f"{kind}:{parent_job}"
        number = world.submit(
            caller,
            partitions=(partition,),
            eligible=wall + delay if delay else 0,
            deadline=None if deadline is None else wall + deadline,
            dependency=dependency,
            **dict.fromkeys(flags, True),
            **fields,
        )
        if isinstance(number, FairbankError):
            rules = world.core.state.partitions.get(partition or "main")
            is_closed = rules is None or rules.state in (
                PartitionState.DRAIN,
                PartitionState.INACTIVE,
            )
            is_gone = fields["reservation"] not in (None, *world.core.state.reservations)
            assert is_closed or is_gone or dependency is not None
        elif parent_job is not None and world.job(parent_job).request.array is None:
            world.parents[number] = (kind, parent_job)

    @rule(caller=CALLERS, pick=PICK, action=st.sampled_from(ACTIONS))
    def change(self, caller: ev.Caller, pick: int, action: str) -> None:
        world = self.world
        jobs = list(world.core.state.jobs.values())
        if not jobs:
            return
        job = jobs[pick % len(jobs)]
        task = job.tasks[pick % len(job.tasks)] if job.tasks and pick % 3 == 0 else None
        which = named(job.number if task is None else f"{job.number}_{task}")
        bodies: dict[str, ev.RequestBody] = {
            "hold": ev.HoldJob(which),
            "release": ev.ReleaseJob(which),
            "cancel": ev.CancelJob(which),
            "requeue": ev.RequeueJob(which),
            "requeuehold": ev.RequeueJob(which, held=True),
            "special": ev.RequeueJob(which, special=True),
            "top": ev.TopJob(which),
            "limit": ev.UpdateJob(jobs=which, limit=300),
            "signal": ev.SendSignal(which, 10),
            "notify": ev.SendNotice(which, "save now"),
            "suspend": ev.SuspendJob(which),
            "resume": ev.ResumeJob(which),
            "priority": ev.UpdateJob(jobs=which, priority=1_000),
            "eligible": ev.UpdateJob(jobs=which, eligible=world.now.wall + 50),
        }
        body = bodies[action]
        before = dict(world.rows)
        answer = world.request(body, caller)
        if isinstance(answer, FairbankError):
            assert world.rows == before
        owner = ev.Caller(job.submission.uid, job.request.user)
        allowed = (OPERATOR,) if action in ("suspend", "resume") else (OPERATOR, owner)
        if caller not in allowed:
            assert isinstance(answer, Forbidden)  # W9

    # --- scheduler and bank

    @rule(begins=st.sampled_from([True, True, False]))
    def plan(self, begins: bool) -> None:
        """Make a pass. Mostly the bank allows what it starts, and the scripts begin."""
        self.world.plan()
        if begins:
            self.world.answer_prologs()
            self.world.begin_all()

    def compute_plan(self) -> None:
        """Compute a plan that is carried out later."""
        self.plans.append(self.world.computed_plan())

    def carry_out_old_plan(self) -> None:
        if self.plans:
            self.world.event(self.plans.pop())

    @precondition(lambda self: bool(self.world.prologs))
    @rule(action=VERDICTS, pick=PICK)
    def verdict(self, action: Action, pick: int) -> None:
        prologs = self.world.prologs
        self.world.answer_prolog(prologs[pick % len(prologs)], action)

    # --- nodes

    @rule(works=st.lists(WORKS, min_size=2, max_size=8))
    def work(self, works: list[tuple[int, str, int]]) -> None:
        """Let runs on nodes come further."""
        for pick, step, code in works:
            places = [(node, run) for node in self.world.nodes.values() for run in node.runs]
            if places:
                self._work(*places[pick % len(places)], step, code)

    def _work(self, node: ModelNode, run: Run, step: str, code: int) -> None:
        stage, name = node.runs[run], node.resources.name
        if step == "begin" and stage == "starting":
            self.world.begin(node, run)
        elif step in ("end", "fail") and stage == "running":
            self.world.end_script(node, run, code * 256 if step == "end" else 9)
        elif step == "clear" and stage == "ending":
            self.world.clear_on(node, run)
            self.gone.append(ev.RunChanged(name, run_status(run, "cleared", 256)))
        elif step in ("launch", "prolog") and stage == "starting":
            node.runs[run] = "cleared"
            if not node.is_silent:
                self.world.event(node.seen(run, stage="cleared", cause=step))
        elif step == "unkillable" and stage == "ending" and not node.is_silent:
            self.world.event(node.seen(run, unkillable=(4711,)))
        elif step == "repeat" and not node.is_silent:
            self._repeat(node, run)

    def _repeat(self, node: ModelNode, run: Run) -> None:
        """Repeat messages, also those of a run that is over."""
        name, stage = node.resources.name, node.runs[run]
        if stage in ("running", "ending"):
            self.world.event(node.seen(run, stage="running"))
        if stage == "ending":
            self.world.event(node.seen(run))
        for name, seen in self.gone[-1:]:
            if not self.world.nodes[name].is_silent:
                for earlier in STAGES.values():
                    self.world.event(ev.RunChanged(name, run_status(seen.run, earlier, 256)))

    # --- faults and administrators

    @rule(
        fault=st.sampled_from(FAULTS),
        pick=PICK,
        event=st.sampled_from(ADMINISTRATION),
        state=st.sampled_from([PartitionState.UP, *PartitionState]),
    )  # fmt: skip
    def disturb(self, fault: str, pick: int, event: NodeEvent, state: PartitionState) -> None:
        node = [*self.world.nodes.values()][pick % len(self.world.nodes)]
        match fault:
            case "silence":
                node.is_silent = True
                self.world.event(ev.NodeSilent(node.resources.name))
            case "register" | "boot" | "lacking":
                self._register(node, fault)
            case "node":
                self._administer(node, event, OPERATOR if pick % 4 else ALICE)
            case "partition":
                self._change_partition(state, "main" if pick % 2 else "urgent")
            case "create":
                self.world.request(ev.UpdatePartition(PartitionRules(name="night")), OPERATOR)
            case "delete":
                self.world.request(ev.DeletePartition("night"), OPERATOR)
            case "reserve":
                self._reserve(node, 6 * pick)
            case "unreserve":
                self.world.request(ev.DeleteReservation("maint"), OPERATOR)
            case "agent":
                self.world.event(ev.AgentConnected())
            case "crash":
                self._crash()
            case other:
                getattr(self, other)()

    def _register(self, node: ModelNode, fault: str) -> None:
        if fault == "boot":
            node.boots += 1
            for run in node.live:
                del node.runs[run]
        node.is_silent = False
        registration = node.registration()
        if fault == "lacking":
            resources = Node(name=node.resources.name, cpus=1)
            registration = registration._replace(resources=resources)
        self.world.event(registration)

    def _administer(self, node: ModelNode, event: NodeEvent, caller: ev.Caller) -> None:
        name = node.resources.name
        answer = self.world.request(ev.UpdateNode(name, event, "maintenance"), caller)
        assert isinstance(answer, Forbidden) is (caller is ALICE)  # W9

    def _change_partition(self, state: PartitionState, name: str) -> None:
        rules = msgspec.structs.replace(self.world.core.state.partitions[name], state=state)
        assert self.world.request(ev.UpdatePartition(rules), OPERATOR) is None

    def _reserve(self, node: ModelNode, delay: int) -> None:
        begin = self.world.now.wall + delay
        reservation = Reservation(
            name="maint",
            nodes=(node.resources.name,),
            begin=Instant(begin),
            end=Instant(begin + 200),
            maintenance=True,
        )
        assert self.world.request(ev.SetReservation(reservation), OPERATOR) is None

    def restart(self) -> None:
        self.world.restart()

    def _crash(self) -> None:
        """Kill the controller when a plan is stored and nothing has been sent."""
        self.world.event(self.world.computed_plan(), is_lost=True)
        self.world.restart()

    @rule(seconds=st.sampled_from([1, 30, 100, 700]))
    def advance(self, seconds: int) -> None:
        self.world.advance(seconds)

    def teardown(self) -> None:
        """Bring the world to rest: every job ends, and every hold of the bank is closed."""
        if not hasattr(self, "world"):
            return
        world = self.world
        for node in world.nodes.values():
            node.is_silent = False
            world.event(node.registration())
        for number in list(world.core.state.jobs):
            world.request(ev.CancelJob(named(number)), OPERATOR)
        for node in world.nodes.values():
            for run in node.live:
                world.clear_on(node, run)
        world.check_at_rest()


# A failure is made smaller, but not explained: that takes minutes for a history.
PHASES = (Phase.reuse, Phase.generate, Phase.shrink)


def test_invariants_hold_in_random_histories() -> None:
    few = settings(
        max_examples=40, stateful_step_count=50, phases=PHASES, report_multiple_bugs=False
    )
    run_state_machine_as_test(Histories, settings=few)


@pytest.mark.campaign
def test_invariants_hold_in_long_random_histories() -> None:
    many = settings(
        max_examples=400, stateful_step_count=100, phases=PHASES, report_multiple_bugs=False
    )
    run_state_machine_as_test(Histories, settings=many)
