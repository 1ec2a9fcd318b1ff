"""An answer of a type: the model looks things up, and what comes back is a value that was checked.

python examples/07_typed_output.py
"""

import os
from dataclasses import dataclass

import dragoman as dm


@dataclass
class Berth:
    harbour: str
    number: int
    depth_m: float


@dm.tool(read_only=True)
def depths(harbour: str) -> dict[int, float]:
    """The depth of each berth of a harbour, in metres."""
    return {1: 4.5, 2: 9.0, 3: 13.5}


PLAYED = """
call: depths {"harbour": "Muscat"}
---
call: final_answer {"harbour": "Muscat", "number": 1, "depth_m": 4.5}
---
call: final_answer {"harbour": "Muscat", "number": 3, "depth_m": 13.5}
"""


def main() -> None:
    model = os.environ.get("DRAGOMAN_MODEL") or dm.testing.ScriptedProvider(PLAYED)  # no key, no server: the script plays the model
    with dm.Agent(model, output=Berth, tools=[depths]) as agent:

        @agent.check
        def is_deep_enough(berth: Berth) -> None:
            if berth.depth_m < 6:
                raise ValueError(f"berth {berth.number} is too shallow for a draught of 6 m")

        result = agent.run_sync("Where in Muscat can we berth?")
    berth = result.output  # a Berth, to type checkers too
    print(f"{berth.harbour}, berth {berth.number}: {berth.depth_m} m")
    print(f"[{result.turns} turns]")


if __name__ == "__main__":
    main()
