"""Options of sbatch that the price ignores: those that change the price, and harmless ones.

See sbatch(1) for their meaning. An unknown option is taken to change the price.
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
    "-J --job-name -o --output -e --error -i --input --mail-type --mail-user -D --chdir --export"
    " --export-file --comment -d --dependency -b --begin --deadline --delay-boot --requeue"
    " --no-requeue --signal --open-mode -C --constraint --prefer --cluster-constraint -x --exclude"
    " --nice --priority --parsable -H --hold -Q --quiet -v --verbose -W --wait --test-only"
    " --reservation --wckey --tmp --mem-bind --tres-bind --gpu-bind --gpu-freq --cpu-freq -m"
    " --distribution --contiguous --switches --use-min-nodes -s --oversubscribe -O --overcommit"
    " --gres-flags --profile --acctg-freq --power --time-min --get-user-env --propagate -k"
    " --no-kill --ignore-pbs --kill-on-invalid-dep --mcs-label --container --container-id --network"
    " --uid --gid --wrap --extra --x11".split()
)


def unread_options(words: Iterable[str]) -> list[str]:
    """Return the options of a script that may change the price, as they were written."""
    said = [word.partition("=")[0] for word in words if word.startswith("-")]
    named = [word if word.startswith("--") else word[:2] for word in said]
    return [name for name in named if name not in _HARMLESS]


def told(unread: Iterable[str]) -> str:
    """Return the options with what they add, if known."""
    about = {name: DEARER.get(_SHORT.get(name, name)) for name in sorted(set(unread))}
    return ", ".join(f"{name} ({what})" if what else name for name, what in about.items())
