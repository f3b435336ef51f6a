"""Options of sbatch that the price does not read: those that change what a job holds, and those that never make it dearer.

The meaning of the options: sbatch(1). One that stands in neither table may do anything, so it counts among the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# What each makes a job hold beside what the options that are read say.
DEARER: Mapping[str, str] = {
    "--exclusive": "all of each node",
    "--ntasks-per-gpu": "more cores",
    "--ntasks-per-core": "more cores",
    "--ntasks-per-socket": "more cores",
    "--cpus-per-gpu": "more cores",
    "--mincpus": "more cores",
    "--core-spec": "all of each node",
    "--thread-spec": "all of each node",
    "--extra-node-info": "more cores",
    "--sockets-per-node": "more cores",
    "--cores-per-socket": "more cores",
    "--threads-per-core": "more cores",
    "--hint": "more cores",
    "--gpus-per-socket": "more GPUs",
    "--tres-per-task": "more of each",
    "--nodelist": "more nodes",
    "--nodefile": "more nodes",
    "--spread-job": "more nodes",
    "--licenses": "licenses",
    "--bb": "burst buffers",
    "--bbf": "burst buffers",
    "hetjob": "the parts beyond the first",
    "packjob": "the parts beyond the first",
}
_SHORT: Mapping[str, str] = {
    "-S": "--core-spec",
    "-B": "--extra-node-info",
    "-w": "--nodelist",
    "-F": "--nodefile",
    "-L": "--licenses",
}
_HARMLESS = frozenset(
    "-J --job-name -o --output -e --error -i --input --mail-type --mail-user -D --chdir --export --export-file --comment -d --dependency "
    "-b --begin --deadline --delay-boot --requeue --no-requeue --signal --open-mode -C --constraint --prefer --cluster-constraint -x "
    "--exclude --nice --priority --parsable -H --hold -Q --quiet -v --verbose -W --wait --test-only --reservation --wckey --tmp "
    "--mem-bind --tres-bind --gpu-bind --gpu-freq --cpu-freq -m --distribution --contiguous --switches --use-min-nodes -s --oversubscribe "
    "-O --overcommit --gres-flags --profile --acctg-freq --power --time-min --get-user-env --propagate -k --no-kill --ignore-pbs "
    "--kill-on-invalid-dep --mcs-label --container --container-id --network --uid --gid --wrap --extra --x11".split()
)


def unread_options(words: Iterable[str]) -> list[str]:
    """Those of a script's left-over words that may change the price, by the name they were written with."""
    said = [word.partition("=")[0] for word in words if word.startswith("-")]
    named = [word if word.startswith("--") else word[:2] for word in said]
    return [name for name in named if name not in _HARMLESS]


def told(unread: Iterable[str]) -> str:
    """The options with what they add, as far as that is known."""
    about = {name: DEARER.get(_SHORT.get(name, name)) for name in sorted(set(unread))}
    return ", ".join(f"{name} ({what})" if what else name for name, what in about.items())
