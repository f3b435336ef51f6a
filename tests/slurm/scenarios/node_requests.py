"""Requests for nodes."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, ScenarioQueue


def _features(queue: ScenarioQueue, nodes: str, features: str) -> None:
    """Set features of these nodes for the time of the scenario."""
    words = ("update", f"nodename={nodes}")
    queue.scontrol(
        *words,
        f"availablefeatures={features}",
        f"activefeatures={features}",
        undo=(*words, "availablefeatures=", "activefeatures="),
    )


def exclusive(queue: ScenarioQueue) -> None:
    """Jobs share nodes; an exclusive job needs idle nodes."""
    queue.submit_running("first", "-n300", "-t30").down()
    queue.submit("alone", "-N2", WHOLE, "-t30", priority=900)
    queue.submit("one-alone", "-N1", WHOLE, "-t20", priority=800)
    queue.submit("shares", "-n20", "-t20", priority=700)


def memory(queue: ScenarioQueue) -> None:
    """CPUs are free, but memory is not."""
    queue.down()
    for number in range(8):
        queue.submit(f"big{number}", "-n1", "--mem=70G", "-t30", priority=900 - number)
    queue.submit("fits", "-n2", "--mem=40G", "-t30", priority=100)


def memory_of_each_cpu(queue: ScenarioQueue) -> None:
    queue.down()
    queue.submit("ten", "-n10", "-N1", "--mem-per-cpu=12G", "-t30", priority=900)
    queue.submit("seven", "-n7", "-N1", "--mem-per-cpu=12G", "-t30", priority=800)
    queue.submit("all", "-n64", "--mem=0", "-N1", "-t30", priority=700)


def constraint(queue: ScenarioQueue) -> None:
    """Two nodes have the feature fast, and three jobs request it."""
    _features(queue, "c03,c04", "fast")
    _features(queue, "c05", "slow")
    queue.down()
    queue.submit("one", "-N1", WHOLE, "-Cfast", "-t30", priority=900)
    queue.submit("two", "-N2", WHOLE, "-Cfast|slow", "-t30", priority=800)
    queue.submit("three", "-N1", WHOLE, "-Cfast", "-t30", priority=700)
    queue.submit("any", "-N2", WHOLE, "-t30", priority=600)


def constraint_matching_or(queue: ScenarioQueue) -> None:
    """All nodes of the job must have the same feature."""
    _features(queue, "c01,c02", "a")
    _features(queue, "c03,c04,c05", "b")
    queue.down()
    queue.submit("alike", "-N3", WHOLE, "-C[a|b]", "-t30", priority=900)
    queue.submit("alike-too", "-N2", WHOLE, "-C[a|b]", "-t30", priority=800)
    queue.submit("no-more", "-N1", WHOLE, "-Cb", "-t30", priority=700)


def node_list(queue: ScenarioQueue) -> None:
    """A job waits for the nodes that it names, and jobs behind it do not wait."""
    queue.submit_running("first", "-wc02", WHOLE, "-t30").down()
    queue.submit("named", "-wc01,c02", WHOLE, "-t30", priority=900)
    queue.submit("others", "-N4", WHOLE, "-t300", priority=800)
    queue.submit("not-those", "-xc03", "-n1", "-t10", priority=700)


def range_of_nodes(queue: ScenarioQueue) -> None:
    """A request of two to four nodes gets as many as are free. The next job gets the rest, which
    may be its minimum.
    """
    queue.down()
    queue.submit("range", "-N2-4", WHOLE, "-t30", priority=900)
    queue.submit("rest", "-N1-3", WHOLE, "-t30", priority=800)
    queue.submit("none", "-N1-2", WHOLE, "-t30", priority=700)


def range_of_shared_nodes(queue: ScenarioQueue) -> None:
    """The number of tasks bounds a range: a job has at most one node per task, and at least the
    nodes that its tasks need.
    """
    queue.submit_running("first", "-N1", WHOLE, "-t30").down()
    queue.submit("tasks", "-n3", "-N1-5", "-t30", priority=900)
    queue.submit("one", "-N1-2", "-t30", priority=800)
    queue.submit("many", "-n100", "-N2-3", "-t30", priority=700)


def excluded(queue: ScenarioQueue) -> None:
    queue.down()
    queue.submit("not-first", "-xc01,c02", "-N3", WHOLE, "-t30", priority=900)
    queue.submit("not-last", "-xc05", "-N2", WHOLE, "-t30", priority=800)


def weights(queue: ScenarioQueue) -> None:
    """The nodes with the lowest weight are used first."""
    for name, weight in (
        ("c01", 30),
        ("c02", 20),
        ("c03", 10),
        ("c04", 20),
        ("c05", 5),
        ("c06", 30),
    ):
        queue.scontrol(
            "update",
            f"nodename={name}",
            f"weight={weight}",
            undo=("update", f"nodename={name}", "weight=1"),
        )
    queue.down()
    queue.submit("one", "-N1", WHOLE, "-t30", priority=900)
    queue.submit("three", "-N3", WHOLE, "-t30", priority=800)
    queue.submit("rest", "-N1", WHOLE, "-t30", priority=700)


def runs_of_nodes(queue: ScenarioQueue) -> None:
    """The smallest sufficient run of free nodes is used first."""
    queue.submit_running("third", "-wc03", WHOLE, "-t30").down()
    queue.submit("two", "-N2", WHOLE, "-t30", priority=900)
    queue.submit("one", "-N1", WHOLE, "-t30", priority=800)
    queue.submit("contiguous", "-N2", WHOLE, "--contiguous", "-t30", priority=700)


def contiguous(queue: ScenarioQueue) -> None:
    """Enough nodes are free, but they are not adjacent."""
    queue.submit_running("second", "-wc02", WHOLE, "-t30").submit_running(
        "fifth", "-wc05", WHOLE, "-t30"
    ).down()
    queue.submit("three", "-N3", WHOLE, "--contiguous", "-t30", priority=900)
    queue.submit("two", "-N2", WHOLE, "--contiguous", "-t20", priority=800)


def single_node_best_fit(queue: ScenarioQueue) -> None:
    """A job of one node goes to the node with the fewest sufficient free CPUs."""
    queue.submit_running("a", "-wc01", "-n20", "-t30").submit_running(
        "b", "-wc02", "-n50", "-t30"
    ).submit_running("c", "-wc04", "-n40", "-t30").down()
    queue.submit("fourteen", "-n14", "-t30", priority=900)
    queue.submit("twenty", "-n20", "-t30", priority=800)
    queue.submit("three", "-n3", "-c4", "-t30", priority=700)
    queue.submit("sixty", "-n60", "-t30", priority=600)
    queue.submit("more-than-one", "-n100", "-t30", priority=500)


def tasks_per_node(queue: ScenarioQueue) -> None:
    queue.down()
    queue.submit("spread", "-n8", "--ntasks-per-node=2", "-c4", "-t30", priority=900)
    queue.submit("threads", "-n3", "-c40", "-t30", priority=800)
    queue.submit("many", "-n100", "-t30", priority=700)


def gpus(queue: ScenarioQueue) -> None:
    """Each node has four GPUs."""
    queue.down()
    queue.submit("three", "-pgpu", "--gres=gpu:a100:3", "-t30", priority=900)
    queue.submit("two", "-pgpu", "--gres=gpu:2", "-t30", priority=800)
    queue.submit("one", "-pgpu", "--gres=gpu:1", "-t30", priority=700)
    queue.submit("three-more", "-pgpu", "--gres=gpu:3", "-t30", priority=600)
    queue.submit("one-more", "-pgpu", "--gres=gpu:1", "-t20", priority=500)


def drained(queue: ScenarioQueue) -> None:
    nodes = "nodename=c02,c03"
    queue.scontrol(
        "update", nodes, "state=drain", "reason=test", undo=("update", nodes, "state=resume")
    ).down()
    queue.submit("five", "-N5", WHOLE, "-t30", priority=900)
    queue.submit("four", "-N4", WHOLE, "-t30", priority=800)
