"""Frames between the PrEp plug-in and the agent (docs/decisions/0012).

A frame is four bytes of length and a body. A body is a word for its kind, then `key=value` lines
in any order, each key once.
"""

from fairbank.agent.protocol.codec import (
    UnreadableFrame,
    decode_agent_message,
    decode_plugin_message,
    encode,
    salvage,
)
from fairbank.agent.protocol.frames import (
    AGENT_BODY_MAX,
    BODY_MAX,
    HEADER,
    TEXT_MAX,
    one_line,
    split_frames,
)

__all__ = [
    "AGENT_BODY_MAX",
    "BODY_MAX",
    "HEADER",
    "TEXT_MAX",
    "UnreadableFrame",
    "decode_agent_message",
    "decode_plugin_message",
    "encode",
    "one_line",
    "salvage",
    "split_frames",
]
