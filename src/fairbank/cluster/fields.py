"""Types of the fields of JSON bodies, with their bounds.

`core.ids` checks names; the patterns here only document them in the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fairbank.core.ids import COMMENT_MAX, ID_MAX, NAME_MAX, NAME_PATTERN, UID_MAX
from fairbank.core.slurm_numbers import TRES_MAX
from fairbank.core.time import LAST_INSTANT, LIMIT_MAX_SECONDS
from fairbank.core.units import AMOUNT_MAX

Id = Annotated[int, Meta(ge=1, le=ID_MAX)]
Uid = Annotated[int, Meta(ge=0, le=UID_MAX, description="a Unix id")]
Amount = Annotated[int, Meta(ge=1, le=AMOUNT_MAX, description="SU-minutes")]
Limit = Annotated[int, Meta(ge=0, le=AMOUNT_MAX, description="SU-minutes; 0 for none")]
Epoch = Annotated[int, Meta(ge=0, le=LAST_INSTANT, description="seconds since 1970")]
Seconds = Annotated[int, Meta(ge=0, le=LIMIT_MAX_SECONDS)]
Name = Annotated[str, Meta(max_length=NAME_MAX, extra_json_schema={"pattern": NAME_PATTERN})]
NameOrNone = Annotated[
    str, Meta(max_length=NAME_MAX, extra_json_schema={"pattern": f"^$|{NAME_PATTERN}"})
]
Names = Annotated[
    str, Meta(max_length=16 * NAME_MAX, description="one name, or several with commas")
]
Size = Annotated[
    str, Meta(max_length=16, description="memory in MiB, or with K, M, G or T", examples=["16G"])
]
Word = Annotated[str, Meta(max_length=32, extra_json_schema={"pattern": "^[a-z][a-z0-9_-]*$"})]
Comment = Annotated[str, Meta(max_length=COMMENT_MAX, description="one line of printable text")]
Reason = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=COMMENT_MAX,
        description="why; one line of printable text",
        extra_json_schema={"pattern": r"\S"},
    ),
]
Tres = Annotated[str, Meta(max_length=TRES_MAX, examples=["cpu=8,mem=16G,gres/gpu=1"])]
