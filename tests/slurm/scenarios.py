"""Scripted queues. Each runs what is to be there, puts the partitions down and lets jobs come. It returns the partitions to put up again,
where these are not the usual ones.

The machine: c01 to c06 with 64 CPUs and 128 GiB, g01 and g02 with 48 and four A100, g03 and g04 with 64 and four T4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairbank.scheduling.rules import PreemptBy
from tests.slurm.queues import PARTITIONS, Queue

Scenario = Callable[[Queue], Sequence[str] | None]
WHOLE = "--exclusive"


def _features(queue: Queue, nodes: str, features: str) -> None:
    """Of these nodes, for the time of the scenario."""
    words = ("update", f"nodename={nodes}")
    queue.tell(
        *words, f"availablefeatures={features}", f"activefeatures={features}", undo=(*words, "availablefeatures=", "activefeatures=")
    )


# --- holes before a job that waits ---


def hole_just_fits(queue: Queue) -> None:
    """Two nodes are free for ten minutes before a job of all six: one of nine minutes fits, one of thirty does not."""
    queue.runs("first", "-N4", WHOLE, "-t10").down()
    queue.waits("all", "-N6", WHOLE, "-t60", priority=900)
    queue.waits("short", "-N1", WHOLE, "-t9", priority=500)
    queue.waits("long", "-N1", WHOLE, "-t30", priority=400)


def hole_just_not(queue: Queue) -> None:
    """A job of eleven minutes does not fit before one that is planned in ten."""
    queue.runs("first", "-N4", WHOLE, "-t10").down()
    queue.waits("all", "-N6", WHOLE, "-t60", priority=900)
    queue.waits("eleven", "-N2", WHOLE, "-t11", priority=500)


def hole_for_a_shorter_one(queue: Queue) -> None:
    """A job that would do with five of its sixty minutes gets as many as there are."""
    queue.runs("first", "-N4", WHOLE, "-t10").down()
    queue.waits("all", "-N6", WHOLE, "-t60", priority=900)
    queue.waits("modest", "-N1", WHOLE, "-t60", "--time-min=5", priority=500)


def nodes_beside_the_plan(queue: Queue) -> None:
    """What is planned for three nodes leaves one for as long as anybody wants."""
    queue.runs("first", "-N4", WHOLE, "-t10").down()
    queue.waits("three", "-N3", WHOLE, "-t60", priority=900)
    queue.waits("long", "-N1", WHOLE, "-t600", priority=500)
    queue.waits("longer", "-N2", WHOLE, "-t600", priority=400)


# --- who goes first ---


def tier(queue: Queue) -> Sequence[str]:
    """A partition of a higher tier goes first on nodes that it shares."""
    express = "partitionname=express"
    queue.tell("create", express, "nodes=c[01-06]", "prioritytier=10", "maxtime=60", "state=down", undo=("delete", express)).down()
    queue.waits("plain", "-N4", WHOLE, "-t30", priority=900)
    queue.waits("small", "-N2", WHOLE, "-t30", priority=800)
    queue.waits("express", "-pexpress", "-N3", WHOLE, "-t30", priority=100)
    return ("express", *PARTITIONS)


def qos_priority(queue: Queue) -> None:
    """Of two that came in this order the one of the better QOS starts."""
    queue.runs("first", "-N5", WHOLE, "-t30").down()
    queue.waits("normal", "-N1", WHOLE, "-t30", user="bob")
    queue.waits("high", "-N1", WHOLE, "-t30", "--qos=high", user="bob")


def submit_time(queue: Queue) -> None:
    """Of equals the one with the lower number."""
    queue.runs("first", "-N5", WHOLE, "-t30").down()
    for name in ("one", "two", "three"):
        queue.waits(name, "-N1", WHOLE, "-t30", priority=500)


def those_behind_wait(queue: Queue) -> None:
    """Nobody behind the head starts on its nodes, however small, if that delays it."""
    queue.runs("first", "-N5", WHOLE, "-t30").down()
    queue.waits("head", "-N2", WHOLE, "-t30", priority=900)
    queue.waits("tiny", "-n1", "-t300", priority=500)
    queue.waits("tiny-too", "-n1", "-t20", priority=400)


def several_partitions(queue: Queue) -> None:
    """A job that may run in two starts where there is room."""
    queue.runs("first", "-N6", WHOLE, "-t30").down()
    queue.waits("either", "-pcpu,gpu", "-N1", WHOLE, "-t30", priority=900)
    queue.waits("here", "-N1", WHOLE, "-t30", priority=800)
    queue.waits("there", "-pgpu", "-N2", WHOLE, "-t30", priority=700)


# --- arrays ---


def array(queue: Queue) -> None:
    """An array that runs two tasks at a time, of a node each."""
    queue.runs("first", "-N3", WHOLE, "-t10").down()
    queue.waits("tasks", "--array=1-6%2", WHOLE, "-t5", priority=900)
    queue.waits("other", "-N1", WHOLE, "-t5", priority=500)


def array_of_many(queue: Queue) -> None:
    """More tasks than nodes."""
    queue.runs("first", "-N2", WHOLE, "-t10").down()
    queue.waits("tasks", "--array=3,5,7-10", WHOLE, "-t5", priority=900)
    queue.waits("other", "-n1", "-t5", priority=500)


# --- what is asked of nodes ---


def exclusive(queue: Queue) -> None:
    """Jobs share nodes, one that wants them for itself needs idle ones."""
    queue.runs("first", "-n300", "-t30").down()
    queue.waits("alone", "-N2", WHOLE, "-t30", priority=900)
    queue.waits("one-alone", "-N1", WHOLE, "-t20", priority=800)
    queue.waits("shares", "-n20", "-t20", priority=700)


def memory(queue: Queue) -> None:
    """CPUs are free, memory is not."""
    queue.down()
    for number in range(8):
        queue.waits(f"big{number}", "-n1", "--mem=70G", "-t30", priority=900 - number)
    queue.waits("fits", "-n2", "--mem=40G", "-t30", priority=100)


def memory_of_each_cpu(queue: Queue) -> None:
    queue.down()
    queue.waits("ten", "-n10", "-N1", "--mem-per-cpu=12G", "-t30", priority=900)
    queue.waits("seven", "-n7", "-N1", "--mem-per-cpu=12G", "-t30", priority=800)
    queue.waits("all", "-n64", "--mem=0", "-N1", "-t30", priority=700)


def constraint(queue: Queue) -> None:
    """Two nodes are fast, and three jobs want such."""
    _features(queue, "c03,c04", "fast")
    _features(queue, "c05", "slow")
    queue.down()
    queue.waits("one", "-N1", WHOLE, "-Cfast", "-t30", priority=900)
    queue.waits("two", "-N2", WHOLE, "-Cfast|slow", "-t30", priority=800)
    queue.waits("three", "-N1", WHOLE, "-Cfast", "-t30", priority=700)
    queue.waits("any", "-N2", WHOLE, "-t30", priority=600)


def constraint_all_alike(queue: Queue) -> None:
    """All nodes of one kind."""
    _features(queue, "c01,c02", "a")
    _features(queue, "c03,c04,c05", "b")
    queue.down()
    queue.waits("alike", "-N3", WHOLE, "-C[a|b]", "-t30", priority=900)
    queue.waits("alike-too", "-N2", WHOLE, "-C[a|b]", "-t30", priority=800)
    queue.waits("no-more", "-N1", WHOLE, "-Cb", "-t30", priority=700)


def node_list(queue: Queue) -> None:
    """A job waits for nodes that it names, and nobody behind it does."""
    queue.runs("first", "-wc02", WHOLE, "-t30").down()
    queue.waits("named", "-wc01,c02", WHOLE, "-t30", priority=900)
    queue.waits("others", "-N4", WHOLE, "-t300", priority=800)
    queue.waits("not-those", "-xc03", "-n1", "-t10", priority=700)


def range_of_nodes(queue: Queue) -> None:
    """Of two to four nodes as many as are free; whoever comes behind has what is left, which may be the least that it wants."""
    queue.down()
    queue.waits("range", "-N2-4", WHOLE, "-t30", priority=900)
    queue.waits("rest", "-N1-3", WHOLE, "-t30", priority=800)
    queue.waits("none", "-N1-2", WHOLE, "-t30", priority=700)


def range_of_nodes_that_are_shared(queue: Queue) -> None:
    """Tasks bound it from both sides: nobody has more nodes than tasks, nor fewer than those need."""
    queue.runs("first", "-N1", WHOLE, "-t30").down()
    queue.waits("tasks", "-n3", "-N1-5", "-t30", priority=900)
    queue.waits("one", "-N1-2", "-t30", priority=800)
    queue.waits("many", "-n100", "-N2-3", "-t30", priority=700)


def excluded(queue: Queue) -> None:
    queue.down()
    queue.waits("not-first", "-xc01,c02", "-N3", WHOLE, "-t30", priority=900)
    queue.waits("not-last", "-xc05", "-N2", WHOLE, "-t30", priority=800)


def weights(queue: Queue) -> None:
    """The lightest nodes first."""
    for name, weight in (("c01", 30), ("c02", 20), ("c03", 10), ("c04", 20), ("c05", 5), ("c06", 30)):
        queue.tell("update", f"nodename={name}", f"weight={weight}", undo=("update", f"nodename={name}", "weight=1"))
    queue.down()
    queue.waits("one", "-N1", WHOLE, "-t30", priority=900)
    queue.waits("three", "-N3", WHOLE, "-t30", priority=800)
    queue.waits("rest", "-N1", WHOLE, "-t30", priority=700)


def runs_of_nodes(queue: Queue) -> None:
    """The tightest run of free nodes is used up first."""
    queue.runs("third", "-wc03", WHOLE, "-t30").down()
    queue.waits("two", "-N2", WHOLE, "-t30", priority=900)
    queue.waits("one", "-N1", WHOLE, "-t30", priority=800)
    queue.waits("contiguous", "-N2", WHOLE, "--contiguous", "-t30", priority=700)


def contiguous(queue: Queue) -> None:
    """Enough nodes are free, and not side by side."""
    queue.runs("second", "-wc02", WHOLE, "-t30").runs("fifth", "-wc05", WHOLE, "-t30").down()
    queue.waits("three", "-N3", WHOLE, "--contiguous", "-t30", priority=900)
    queue.waits("two", "-N2", WHOLE, "--contiguous", "-t20", priority=800)


def tasks_by_node(queue: Queue) -> None:
    queue.down()
    queue.waits("spread", "-n8", "--ntasks-per-node=2", "-c4", "-t30", priority=900)
    queue.waits("threads", "-n3", "-c40", "-t30", priority=800)
    queue.waits("many", "-n100", "-t30", priority=700)


def gpus(queue: Queue) -> None:
    """Four GPUs a node."""
    queue.down()
    queue.waits("three", "-pgpu", "--gres=gpu:a100:3", "-t30", priority=900)
    queue.waits("two", "-pgpu", "--gres=gpu:2", "-t30", priority=800)
    queue.waits("one", "-pgpu", "--gres=gpu:1", "-t30", priority=700)
    queue.waits("three-more", "-pgpu", "--gres=gpu:3", "-t30", priority=600)
    queue.waits("one-more", "-pgpu", "--gres=gpu:1", "-t20", priority=500)


def drained(queue: Queue) -> None:
    nodes = "nodename=c02,c03"
    queue.tell("update", nodes, "state=drain", "reason=test", undo=("update", nodes, "state=resume")).down()
    queue.waits("five", "-N5", WHOLE, "-t30", priority=900)
    queue.waits("four", "-N4", WHOLE, "-t30", priority=800)


# --- what holds jobs back ---


def dependency(queue: Queue) -> None:
    queue.runs("first", "-N1", WHOLE, "-t30").down()
    queue.waits("after", f"-dafterok:{queue.jobs['first']}", "-N1", "-t30", priority=900)
    queue.waits("free", "-N1", WHOLE, "-t30", priority=100)


def held(queue: Queue) -> None:
    queue.down()
    queue.waits("by-user", "--hold", "-N6", WHOLE, "-t30")
    queue.waits("by-admin", "-N6", WHOLE, "-t30").tell("hold", str(queue.jobs["by-admin"]))
    queue.waits("free", "-N6", WHOLE, "-t30")


def begin_time(queue: Queue) -> None:
    queue.down()
    queue.waits("later", "--begin=now+1hour", "-N6", WHOLE, "-t30", priority=900)
    queue.waits("now", "-N6", WHOLE, "-t300", priority=100)


def too_large_for_its_partition(queue: Queue) -> None:
    cpu = "partitionname=cpu"
    queue.tell("update", cpu, "maxnodes=2", "maxtime=60", undo=("update", cpu, "maxnodes=unlimited", "maxtime=7-0")).down()
    queue.waits("wide", "-N3", WHOLE, "-t30", priority=900)
    queue.waits("long", "-N1", WHOLE, "-t90", priority=800)
    queue.waits("fits", "-N2", WHOLE, "-t60", priority=700)


def licences(queue: Queue) -> None:
    """Two licences, and a job without one behind those that wait for them."""
    queue.runs("first", "-n1", "-Lmatlab:1", "-t30").down()
    queue.waits("both", "-N1", WHOLE, "-Lmatlab:2", "-t30", priority=900)
    queue.waits("one", "-N1", WHOLE, "-Lmatlab:1", "-t30", priority=800)
    queue.waits("another", "-n1", "-Lmatlab", "-t30", priority=700)
    queue.waits("free", "-N1", WHOLE, "-t300", priority=600)


def association_jobs(queue: Queue) -> None:
    queue.limits("account", "wg_bio", grpjobs=2)
    queue.runs("first", "-n1", "-t30", user="carol").down()
    for number, user in enumerate(("bob", "carol", "alice", "carol")):
        queue.waits(f"job{number}", "-N1", WHOLE, "-t30", user=user, priority=900 - number)


def association_cpus(queue: Queue) -> None:
    """Together, and of one job."""
    queue.limits("account", "wg_bio", grptres="cpu=40")
    queue.limits("user", "alice", maxtresperjob="cpu=32")
    queue.runs("first", "-n30", "-t30", user="carol").down()
    queue.waits("twenty", "-n20", "-t30", user="bob", priority=900)
    queue.waits("ten", "-n10", "-t30", user="bob", priority=800)
    queue.waits("forty", "-n40", "-t30", priority=700)
    queue.waits("thirty", "-n30", "-t30", priority=600)


def association_nodes(queue: Queue) -> None:
    """A node that is used already counts once."""
    queue.limits("account", "wg_bio", grptres="node=2")
    queue.runs("first", "-wc01", "-n1", "-t30", user="carol").down()
    queue.waits("same", "-wc01", "-n1", "-t30", user="carol", priority=900)
    queue.waits("two", "-N2", WHOLE, "-t30", user="carol", priority=800)
    queue.waits("one", "-N1", WHOLE, "-t30", user="bob", priority=700)


def association_wall(queue: Queue) -> None:
    queue.limits("user", "dave", maxwall="20")
    queue.down()
    queue.waits("long", "-n1", "-t30", user="dave", priority=900)
    queue.waits("short", "-n1", "-t20", user="dave", priority=800)


def qos_jobs_of_a_user(queue: Queue) -> None:
    queue.limits("qos", "low", maxjobsperuser=1)
    queue.down()
    queue.waits("one", "--qos=low", "-n1", "-t30", user="bob", priority=900)
    queue.waits("two", "--qos=low", "-n1", "-t30", user="bob", priority=800)
    queue.waits("of-carol", "--qos=low", "-n1", "-t30", user="carol", priority=700)
    queue.waits("normal", "-n1", "-t30", user="bob", priority=600)


def qos_cpus(queue: Queue) -> None:
    queue.limits("qos", "high", grptres="cpu=64", maxtresperuser="cpu=48")
    queue.runs("first", "--qos=high", "-n20", "-t30").down()
    queue.waits("too-many", "--qos=high", "-n50", "-t30", user="bob", priority=900)
    queue.waits("mine", "--qos=high", "-n30", "-t30", priority=800)
    queue.waits("theirs", "--qos=high", "-n24", "-t30", user="bob", priority=700)
    queue.waits("last", "--qos=high", "-n4", "-t30", user="carol", priority=600)


def limit_beside_those_who_run(queue: Queue) -> None:
    """The same of one that would be within the limit if nobody of its account ran."""
    queue.limits("account", "wg_bio", grptres="cpu=100")
    queue.runs("first", "-N5", WHOLE, "-t30").runs("ours", "-n10", "-t30", user="bob").down()
    queue.waits("over", "-n95", "-t30", user="bob", priority=900)
    queue.waits("behind", "-n1", "-t60", priority=800)
    queue.waits("beyond", "-n64", "-t20", user="carol", priority=700)


def single_node_that_is_tightest(queue: Queue) -> None:
    """A job that one node can hold goes to that with the fewest CPUs free that are enough."""
    queue.runs("a", "-wc01", "-n20", "-t30").runs("b", "-wc02", "-n50", "-t30").runs("c", "-wc04", "-n40", "-t30").down()
    queue.waits("fourteen", "-n14", "-t30", priority=900)
    queue.waits("twenty", "-n20", "-t30", priority=800)
    queue.waits("three", "-n3", "-c4", "-t30", priority=700)
    queue.waits("sixty", "-n60", "-t30", priority=600)
    queue.waits("more-than-one", "-n100", "-t30", priority=500)


def limit_of_who_does_not_fit(queue: Queue) -> None:
    """A limit on CPUs is looked at when there are nodes: whoever has none waits for these, and the others behind it."""
    queue.limits("account", "wg_bio", grptres="cpu=100")
    queue.runs("first", "-N5", WHOLE, "-t30").down()
    queue.waits("over", "-n120", "-t30", user="bob", priority=900)
    queue.waits("behind", "-n1", "-t60", priority=800)


# --- reservations ---


def reservation_ahead(queue: Queue) -> None:
    """Five nodes are reserved in twenty minutes."""
    queue.tell("create", "reservation", "reservationname=course", "starttime=now+20minutes", "duration=60", "nodes=c[01-05]", "users=carol")
    queue.down()
    queue.waits("short", "-N2", WHOLE, "-t10", priority=900)
    queue.waits("long", "-N1", WHOLE, "-t60", priority=800)
    queue.waits("long-too", "-N1", WHOLE, "-t60", priority=700)
    queue.waits("short-too", "-N1", WHOLE, "-t10", priority=600)


def reservation_running(queue: Queue) -> None:
    """Three nodes are carol's."""
    queue.tell("create", "reservation", "reservationname=course", "starttime=now", "duration=60", "nodes=c[01-03]", "users=carol").down()
    queue.waits("others", "-N4", WHOLE, "-t30", priority=900)
    queue.waits("hers", "--reservation=course", "-N2", WHOLE, "-t30", user="carol", priority=500)
    queue.waits("too-long", "--reservation=course", "-N1", WHOLE, "-t90", user="carol", priority=400)
    queue.waits("outside", "-N1", WHOLE, "-t30", user="carol", priority=300)


def reservation_to_come(queue: Queue) -> None:
    queue.tell("create", "reservation", "reservationname=course", "starttime=now+1hour", "duration=60", "nodes=c01", "users=carol").down()
    queue.waits("early", "--reservation=course", "-n1", "-t30", user="carol", priority=900)
    queue.waits("free", "-N6", WHOLE, "-t30", priority=100)


def maintenance(queue: Queue) -> None:
    """All nodes of the partition are worked on in half an hour."""
    when = ("starttime=now+30minutes", "duration=60")
    queue.tell("create", "reservation", "reservationname=works", *when, "nodes=c[01-06]", "users=root", "flags=maint").down()
    queue.waits("long", "-N1", WHOLE, "-t60", priority=900)
    queue.waits("short", "-N1", WHOLE, "-t20", priority=800)


# --- whose place others take ---


def preempted_by_qos(queue: Queue) -> None:
    """Those of QOS high take the place of those of QOS low, and of nobody else. (All nodes that come free are taken: the first of them may
    be free a moment before the others.)"""
    queue.account("modify", "qos", "high", "set", "preempt=low")
    queue.runs("low", "--qos=low", "-N2", WHOLE, "-t30", user="bob")
    queue.runs("low-too", "--qos=low", "-N2", WHOLE, "-t30", user="bob")
    queue.runs("normal", "-N2", WHOLE, "-t30").down()
    queue.waits("urgent", "--qos=high", "-N4", WHOLE, "-t30", user="bob", priority=900)
    queue.waits("behind", "-N1", WHOLE, "-t30", priority=800)
    queue.waits("urgent-too", "--qos=high", "-N3", WHOLE, "-t30", user="bob", priority=700)


def no_more_preempted_than_needed(queue: Queue) -> None:
    """One node is idle, and one of three low jobs is enough."""
    queue.account("modify", "qos", "high", "set", "preempt=low")
    for name in ("one", "two", "three"):
        queue.runs(name, "--qos=low", "-N1", WHOLE, "-t30", user="bob")
    queue.runs("normal", "-N2", WHOLE, "-t30").down()
    queue.waits("urgent", "--qos=high", "-N2", WHOLE, "-t30", user="bob", priority=900)


def preempted_by_partition(queue: Queue) -> Sequence[str]:
    """Jobs of a partition of a higher tier take the place of those of a lower one on the nodes of both."""
    express = "partitionname=express"
    queue.runs("plain", "-N4", WHOLE, "-t30").runs("small", "-N1", WHOLE, "-t30")
    queue.tell("create", express, "nodes=c[01-06]", "prioritytier=10", "maxtime=60", "state=down", undo=("delete", express)).down()
    queue.waits("express", "-pexpress", "-N2", WHOLE, "-t30", priority=100)
    queue.waits("waits", "-N3", WHOLE, "-t30", priority=900)
    return ("express", *PARTITIONS)


PREEMPTING: tuple[tuple[PreemptBy, Scenario], ...] = (
    (PreemptBy.QOS, preempted_by_qos),
    (PreemptBy.QOS, no_more_preempted_than_needed),
    (PreemptBy.PARTITION, preempted_by_partition),
)
SCENARIOS: tuple[Scenario, ...] = (
    hole_just_fits,
    hole_just_not,
    hole_for_a_shorter_one,
    nodes_beside_the_plan,
    tier,
    qos_priority,
    submit_time,
    those_behind_wait,
    several_partitions,
    array,
    array_of_many,
    exclusive,
    memory,
    memory_of_each_cpu,
    constraint,
    constraint_all_alike,
    node_list,
    range_of_nodes,
    range_of_nodes_that_are_shared,
    excluded,
    weights,
    runs_of_nodes,
    contiguous,
    tasks_by_node,
    gpus,
    drained,
    dependency,
    held,
    begin_time,
    too_large_for_its_partition,
    licences,
    association_jobs,
    association_cpus,
    association_nodes,
    association_wall,
    qos_jobs_of_a_user,
    qos_cpus,
    limit_of_who_does_not_fit,
    limit_beside_those_who_run,
    single_node_that_is_tightest,
    reservation_ahead,
    reservation_running,
    reservation_to_come,
    maintenance,
)
