"""Requests for nodes."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, Queue


def _features(queue: Queue, nodes: str, features: str) -> None:
    """Set features of these nodes for the time of the scenario."""
    words = ("update", f"nodename={nodes}")
    queue.tell(
        *words,
        f"availablefeatures={features}",
        f"activefeatures={features}",
        undo=(*words, "availablefeatures=", "activefeatures="),
    )


def exclusive(queue: Queue) -> None:
    """Jobs share nodes; an exclusive job needs idle nodes."""
    queue.runs("first", "-n300", "-t30").down()
    queue.waits("alone", "-N2", WHOLE, "-t30", priority=900)
    queue.waits("one-alone", "-N1", WHOLE, "-t20", priority=800)
    queue.waits("shares", "-n20", "-t20", priority=700)


def memory(queue: Queue) -> None:
    """CPUs are free, but memory is not."""
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
    """Two nodes have the feature fast, and three jobs request it."""
    _features(queue, "c03,c04", "fast")
    _features(queue, "c05", "slow")
    queue.down()
    queue.waits("one", "-N1", WHOLE, "-Cfast", "-t30", priority=900)
    queue.waits("two", "-N2", WHOLE, "-Cfast|slow", "-t30", priority=800)
    queue.waits("three", "-N1", WHOLE, "-Cfast", "-t30", priority=700)
    queue.waits("any", "-N2", WHOLE, "-t30", priority=600)


def constraint_all_alike(queue: Queue) -> None:
    """All nodes of the job must have the same feature."""
    _features(queue, "c01,c02", "a")
    _features(queue, "c03,c04,c05", "b")
    queue.down()
    queue.waits("alike", "-N3", WHOLE, "-C[a|b]", "-t30", priority=900)
    queue.waits("alike-too", "-N2", WHOLE, "-C[a|b]", "-t30", priority=800)
    queue.waits("no-more", "-N1", WHOLE, "-Cb", "-t30", priority=700)


def node_list(queue: Queue) -> None:
    """A job waits for the nodes that it names, and jobs behind it do not wait."""
    queue.runs("first", "-wc02", WHOLE, "-t30").down()
    queue.waits("named", "-wc01,c02", WHOLE, "-t30", priority=900)
    queue.waits("others", "-N4", WHOLE, "-t300", priority=800)
    queue.waits("not-those", "-xc03", "-n1", "-t10", priority=700)


def range_of_nodes(queue: Queue) -> None:
    """A request of two to four nodes gets as many as are free. The next job gets the rest, which
    may be its minimum.
    """
    queue.down()
    queue.waits("range", "-N2-4", WHOLE, "-t30", priority=900)
    queue.waits("rest", "-N1-3", WHOLE, "-t30", priority=800)
    queue.waits("none", "-N1-2", WHOLE, "-t30", priority=700)


def range_of_nodes_that_are_shared(queue: Queue) -> None:
    """The number of tasks bounds a range: a job has at most one node per task, and at least the
    nodes that its tasks need.
    """
    queue.runs("first", "-N1", WHOLE, "-t30").down()
    queue.waits("tasks", "-n3", "-N1-5", "-t30", priority=900)
    queue.waits("one", "-N1-2", "-t30", priority=800)
    queue.waits("many", "-n100", "-N2-3", "-t30", priority=700)


def excluded(queue: Queue) -> None:
    queue.down()
    queue.waits("not-first", "-xc01,c02", "-N3", WHOLE, "-t30", priority=900)
    queue.waits("not-last", "-xc05", "-N2", WHOLE, "-t30", priority=800)


def weights(queue: Queue) -> None:
    """The nodes with the lowest weight are used first."""
    for name, weight in (
        ("c01", 30),
        ("c02", 20),
        ("c03", 10),
        ("c04", 20),
        ("c05", 5),
        ("c06", 30),
    ):
        queue.tell(
            "update",
            f"nodename={name}",
            f"weight={weight}",
            undo=("update", f"nodename={name}", "weight=1"),
        )
    queue.down()
    queue.waits("one", "-N1", WHOLE, "-t30", priority=900)
    queue.waits("three", "-N3", WHOLE, "-t30", priority=800)
    queue.waits("rest", "-N1", WHOLE, "-t30", priority=700)


def runs_of_nodes(queue: Queue) -> None:
    """The smallest sufficient run of free nodes is used first."""
    queue.runs("third", "-wc03", WHOLE, "-t30").down()
    queue.waits("two", "-N2", WHOLE, "-t30", priority=900)
    queue.waits("one", "-N1", WHOLE, "-t30", priority=800)
    queue.waits("contiguous", "-N2", WHOLE, "--contiguous", "-t30", priority=700)


def contiguous(queue: Queue) -> None:
    """Enough nodes are free, but they are not adjacent."""
    queue.runs("second", "-wc02", WHOLE, "-t30").runs("fifth", "-wc05", WHOLE, "-t30").down()
    queue.waits("three", "-N3", WHOLE, "--contiguous", "-t30", priority=900)
    queue.waits("two", "-N2", WHOLE, "--contiguous", "-t20", priority=800)


def single_node_that_is_tightest(queue: Queue) -> None:
    """A job of one node goes to the node with the fewest sufficient free CPUs."""
    queue.runs("a", "-wc01", "-n20", "-t30").runs("b", "-wc02", "-n50", "-t30").runs(
        "c", "-wc04", "-n40", "-t30"
    ).down()
    queue.waits("fourteen", "-n14", "-t30", priority=900)
    queue.waits("twenty", "-n20", "-t30", priority=800)
    queue.waits("three", "-n3", "-c4", "-t30", priority=700)
    queue.waits("sixty", "-n60", "-t30", priority=600)
    queue.waits("more-than-one", "-n100", "-t30", priority=500)


def tasks_by_node(queue: Queue) -> None:
    queue.down()
    queue.waits("spread", "-n8", "--ntasks-per-node=2", "-c4", "-t30", priority=900)
    queue.waits("threads", "-n3", "-c40", "-t30", priority=800)
    queue.waits("many", "-n100", "-t30", priority=700)


def gpus(queue: Queue) -> None:
    """Each node has four GPUs."""
    queue.down()
    queue.waits("three", "-pgpu", "--gres=gpu:a100:3", "-t30", priority=900)
    queue.waits("two", "-pgpu", "--gres=gpu:2", "-t30", priority=800)
    queue.waits("one", "-pgpu", "--gres=gpu:1", "-t30", priority=700)
    queue.waits("three-more", "-pgpu", "--gres=gpu:3", "-t30", priority=600)
    queue.waits("one-more", "-pgpu", "--gres=gpu:1", "-t20", priority=500)


def drained(queue: Queue) -> None:
    nodes = "nodename=c02,c03"
    queue.tell(
        "update", nodes, "state=drain", "reason=test", undo=("update", nodes, "state=resume")
    ).down()
    queue.waits("five", "-N5", WHOLE, "-t30", priority=900)
    queue.waits("four", "-N4", WHOLE, "-t30", priority=800)
