"""What your tools work with: dependencies, progress, a time limit, and an image that the model is shown.

python examples/08_dependencies.py
"""

import os
import struct
import zlib
from dataclasses import dataclass

import dragoman as dm


@dataclass
class Harbour:
    """What the tools of this program need: in a service, connections, clients and the user."""

    user: str
    soundings_m: list[float]


@dm.tool(read_only=True, timeout_s=10)
def sound(context: dm.ToolContext[Harbour], berth: int) -> str:
    """The depth at a berth, in metres."""
    depths = context.deps.soundings_m
    for number in range(1, berth + 1):
        if context.is_cancelled:  # by the user, or because it took too long: a thread cannot be interrupted, so it looks
            return "not finished"
        context.progress(f"berth {number}", number, berth)
    return f"{depths[berth - 1]} m, measured for {context.deps.user}"


@dm.tool(read_only=True)
async def chart(context: dm.ToolContext[Harbour]) -> bytes:
    """The depths as a picture: the darker, the deeper."""
    return png([int(255 - 15 * depth) for depth in context.deps.soundings_m])


def png(greys: list[int]) -> bytes:
    """A picture of one line of grey dots."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", len(greys), 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes([0, *greys]))) + chunk(b"IEND", b"")


PLAYED = """
call: sound {"berth": 3}
call: chart {}
---
text: Berth 3 is the deepest: 13.5 m.
---
call: sound {"berth": 1}
---
text: Berth 1 has 2.0 m today.
"""


def main() -> None:
    model = os.environ.get("DRAGOMAN_MODEL") or dm.testing.ScriptedProvider(PLAYED)  # no key, no server: the script plays the model
    with dm.Agent(model, deps=Harbour("Sindbad", [4.5, 9.0, 13.5]), tools=[sound, chart]) as agent:
        for event in agent.stream_sync("Which of the 3 berths is the deepest? Look at the chart too."):
            match event:
                case dm.events.ToolCallUpdated() if event.progress:
                    print(f"  {event.progress_line}")
                case dm.ToolCallFinished(parts=(dm.ToolResult(content=(dm.Blob(mime=mime, size=size),)),)):
                    print(f"  the model is shown {mime}, {size} bytes")
                case dm.TextDelta(text=text):
                    print(text)
                case _:
                    pass
        tomorrow = Harbour("Hasan", [2.0, 6.5, 11.0])
        print(agent.run_sync("And berth 1?", deps=tomorrow).text)  # for this run alone

    print(sound(dm.ToolContext(tomorrow), 1))  # in a test: the function as it is, with a context of your own


if __name__ == "__main__":
    main()
