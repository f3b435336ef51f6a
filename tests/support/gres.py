"""Examples of GRES. `core.gres` and the Lua of the submission plug-ins read them alike."""

from __future__ import annotations

GRES_EXAMPLES = (
    ("gpu", [("gpu", "", 1)]),
    ("gpu:2", [("gpu", "", 2)]),
    ("gpu:a100:2", [("gpu", "a100", 2)]),
    ("gpu:a100", [("gpu", "a100", 1)]),
    ("gpu:A100", [("gpu", "A100", 1)]),
    ("gpu:2080ti:2", [("gpu", "2080ti", 2)]),
    ("gpu:2080ti", [("gpu", "2080ti", 1)]),
    ("gpu:2080ti:8(S:0-1)", [("gpu", "2080ti", 8)]),
    ("gpu:3090:2", [("gpu", "3090", 2)]),
    ("gpu:1g.10gb:1", [("gpu", "1g.10gb", 1)]),
    ("gpu:1g.10gb", [("gpu", "1g.10gb", 1)]),
    ("gpu:3g.20gb:1,gpu:a100:1", [("gpu", "3g.20gb", 1), ("gpu", "a100", 1)]),
    ("gpu:a100:2(IDX:0,3),gpu:2", [("gpu", "a100", 2), ("gpu", "", 2)]),
    ("gpu:tesla:no_consume:2", [("gpu", "tesla", 2)]),
    ("gres:gpu:2", [("gpu", "", 2)]),
    ("gres:gpu:a100:2", [("gpu", "a100", 2)]),
    ("gres/gpu:2", [("gpu", "", 2)]),
    ("gres/gpu=2", [("gpu", "", 2)]),
    ("gres/gpu:3090=2", [("gpu", "3090", 2)]),
    ("gpu:1K", [("gpu", "", 1024)]),
    ("gpu:0", [("gpu", "", 0)]),
    ("gpu:2,lscratch:200", [("gpu", "", 2), ("lscratch", "", 200)]),
    ("gpu:2,tmpspace:64G", [("gpu", "", 2), ("tmpspace", "", 64 * 1024**3)]),
    ("mygpu:2", [("mygpu", "", 2)]),
    ("gpu_mem:ssd:4,gpu:t4:1", [("gpu_mem", "ssd", 4), ("gpu", "t4", 1)]),
)
"""Text of --gres, and the name, type and count of each GRES in it."""

GPU_EXAMPLES = (
    ("2", [("", 2)]),
    ("a100", [("a100", 1)]),
    ("a100:2", [("a100", 2)]),
    ("2080ti:2", [("2080ti", 2)]),
    ("3090:2", [("3090", 2)]),
    ("3090", [("", 3090)]),
    ("1g.10gb:1,a100:2", [("1g.10gb", 1), ("a100", 2)]),
)
"""Text of --gpus, and the type and count of its GPUs."""

TYPE_EXAMPLES = (
    ({"a100": 4}, "gpu:2", {"gpu": 2, "gpu:a100": 2}),
    ({"A100": 4}, "gpu:2", {"gpu": 2, "gpu:a100": 2}),
    ({"A100": 4}, "gpu:A100:2", {"gpu": 2, "gpu:a100": 2}),
    ({"a100": 4, "t4": 4}, "gpu:2", {"gpu": 2}),
    ({"any": 4}, "gpu:2", {"gpu": 2}),
    ({"a100": 4, "any": 0}, "gpu:2", {"gpu": 2}),
    ({"a100": 4, "t4": 4}, "gpu:a100:1,gpu:1", {"gpu": 2, "gpu:a100": 1}),
    # Some nodes have none, or more.
    ({"a100": 0}, "gpu:2", {"gpu": 2, "gpu:a100": 2}),
    ({"a100": 4}, "gpu:8", {"gpu": 8, "gpu:a100": 8}),
    ({"a100": 4}, "gpu:a100:8", {"gpu": 8, "gpu:a100": 8}),
)
"""Types of a partition's GPUs with the number that each node has, text of --gres, and the TRES that
a job on one node is priced by."""

MATCH_EXAMPLES = (
    ("a100", "a100", True),
    ("A100", "A100", True),
    ("a100", "A100", False),
    ("A100", "a100", False),
    ("a100", "a1", False),
    ("2080ti", "2080Ti", False),
)
"""Type of a node's GPUs, type of a request, and whether Slurm takes it
(docs/reference/slurm-rules.md, "Billing").
"""
