"""Reasons that hold jobs: dependencies, times, licences, limits."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, Queue


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
    queue.tell(
        "update",
        cpu,
        "maxnodes=2",
        "maxtime=60",
        undo=("update", cpu, "maxnodes=unlimited", "maxtime=7-0"),
    ).down()
    queue.waits("wide", "-N3", WHOLE, "-t30", priority=900)
    queue.waits("long", "-N1", WHOLE, "-t90", priority=800)
    queue.waits("fits", "-N2", WHOLE, "-t60", priority=700)


def licences(queue: Queue) -> None:
    """There are two licences. A job without a licence is behind those that wait for them."""
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
    """Limits on the CPUs of all jobs of an association, and of one job."""
    queue.limits("account", "wg_bio", grptres="cpu=40")
    queue.limits("user", "alice", maxtresperjob="cpu=32")
    queue.runs("first", "-n30", "-t30", user="carol").down()
    queue.waits("twenty", "-n20", "-t30", user="bob", priority=900)
    queue.waits("ten", "-n10", "-t30", user="bob", priority=800)
    queue.waits("forty", "-n40", "-t30", priority=700)
    queue.waits("thirty", "-n30", "-t30", priority=600)


def association_nodes(queue: Queue) -> None:
    """A node that the association already uses counts once."""
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
    """The account may use 100 CPUs and uses ten, so 95 more exceed the limit."""
    queue.limits("account", "wg_bio", grptres="cpu=100")
    queue.runs("first", "-N5", WHOLE, "-t30").runs("ours", "-n10", "-t30", user="bob").down()
    queue.waits("over", "-n95", "-t30", user="bob", priority=900)
    queue.waits("behind", "-n1", "-t60", priority=800)
    queue.waits("beyond", "-n64", "-t20", user="carol", priority=700)


def limit_of_who_does_not_fit(queue: Queue) -> None:
    """A limit on CPUs is tested only when nodes are free: a job without nodes waits for these, and
    so do the jobs behind it.
    """
    queue.limits("account", "wg_bio", grptres="cpu=100")
    queue.runs("first", "-N5", WHOLE, "-t30").down()
    queue.waits("over", "-n120", "-t30", user="bob", priority=900)
    queue.waits("behind", "-n1", "-t60", priority=800)
