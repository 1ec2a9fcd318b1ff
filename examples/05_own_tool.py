"""A function of your own as a tool, and an agent that is not async. The signature is the schema, the docstring what the model is told.

python examples/05_own_tool.py
"""

import os
from typing import Annotated, Literal

import dragoman as dm

TIDES = {"Muscat": [4.1, 10.3, 16.5, 22.6], "Bergen": [1.2, 7.4, 13.6, 19.8]}


@dm.tool(read_only=True)
def tides(harbour: Annotated[str, "name of the harbour"], kind: Literal["high", "low"] = "high") -> list[str]:
    """When the tide is high or low today, as hours of the day."""
    hours = TIDES.get(harbour, [])
    return [f"{int(hour):02d}:{int(hour % 1 * 60):02d}" for hour in hours[kind == "low" :: 2]]


PLAYED = """
call: tides {"harbour": "Muscat"}
call: tides {"harbour": "Bergen", "kind": "low"}
---
text: High water in Muscat is at 04:05 and 16:30; low water in Bergen at 07:24 and 19:48.
"""


def main() -> None:
    model = os.environ.get("DRAGOMAN_MODEL") or dm.testing.ScriptedProvider(PLAYED)  # no key, no server: the script plays the model
    with dm.Agent(model, tools=[tides]) as agent:
        result = agent.run_sync("When can I leave Muscat on the flood, and when must I not enter Bergen?")
    print(result.text)
    print(f"[{result.tool_calls} calls, {result.tool_failures} failures]")


if __name__ == "__main__":
    main()
