"""A server written with the official SDK, which speaks both eras: `sdk_server.py stdio`, or `http PORT`, or `sse PORT`."""

import sys
from pathlib import Path
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, Elicit, Image, MCPServer, Resolve
from pydantic import BaseModel

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    + "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)

server = MCPServer("port", instructions="Ask the harbour master.")


def write(path: str, text: str) -> None:
    Path(path).write_text(text)


class Berth(BaseModel):
    ship: str = "Argo"
    berth: int = 3


def which_berth() -> Elicit[Berth]:
    return Elicit("Which ship, and where?", Berth)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def picture() -> Image:
    return Image(data=PIXEL, format="png")


@server.tool()
def sink(ship: str) -> str:
    raise ValueError(f"{ship} does not sink")


@server.tool()
async def unload(crates: int, ctx: Context) -> str:
    for done in range(crates):
        await ctx.report_progress(done + 1, crates, f"crate {done + 1}")
        await anyio.sleep(0.01)
    return f"{crates} crates"


@server.tool()
def moor(where: Annotated[Berth, Resolve(which_berth)]) -> str:
    return f"{where.ship} at {where.berth}"


@server.tool()
async def wait(seconds: float, note: str) -> str:
    """Wait; a file says how it ended."""
    write(note, "began")
    try:
        await anyio.sleep(seconds)
    except BaseException:
        write(note, "cancelled")
        raise
    write(note, "ended")
    return "ended"


@server.resource("log://today", mime_type="text/plain")
def log() -> str:
    return "calm sea"


@server.resource("ship://{name}")
def ship(name: str) -> str:
    return f"the {name}"


@server.prompt()
def greet(name: str) -> str:
    return f"Greet {name}."


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["stdio"]:
            server.run()
        case ["http", port]:
            server.run("streamable-http", host="127.0.0.1", port=int(port))
        case ["sse", port]:
            server.run("sse", host="127.0.0.1", port=int(port))
