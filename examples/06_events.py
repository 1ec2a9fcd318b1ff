"""Everything a run tells while it goes on, and a person (here: ten lines of Python) who decides what may be written.

python examples/06_events.py
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import dragoman as dm

PLAYED = """
thought: **Plan** Read it, then mend it.
text: I will correct the spelling.
call: read_file {"file_path": "notes.txt"}
---
call: edit {"file_path": "notes.txt", "old_string": "harbor", "new_string": "harbour"}
call: run_shell {"command": "git push --force"}
---
text: The spelling is corrected. I did not push: you refused it.
"""


async def ask(call: dm.ToolCall, intent: dm.Intent) -> dm.Allow | dm.Deny:
    print(f"  ? {intent.title}")
    for line in intent.preview.splitlines():
        print(f"    {line}")
    return dm.Allow() if call.name == "edit" else dm.Deny("no pushing today")


async def watch(folder: str) -> None:
    model, approval = dm.testing.ScriptedProvider(PLAYED), dm.ApprovalOptions(ask=ask)
    async with dm.coding_agent(model, workspace=folder, approval=approval) as agent, agent.run("Correct the spelling.") as run:
        async for event in run:
            match event:
                case dm.ThoughtDelta(text=text):
                    print(f"  ~ {text}")
                case dm.TextDelta(text=text):
                    print(text, end="")
                case dm.ToolCallRequested(call=call):
                    print(f"  > {call.name} {call.arguments}")
                case dm.events.ToolCallUpdated(call_id=call_id, state=state):
                    print(f"    {call_id} {state}")
                case dm.ToolCallFinished(error=error):
                    print(f"  < {error or 'done'}")
                case dm.TurnFinished(reason=reason):
                    print(f"\n  = {reason}")
                case _:
                    pass


def main() -> None:
    with TemporaryDirectory() as folder:
        notes = Path(folder, "notes.txt")
        notes.write_text("We reached the harbor.\n")
        asyncio.run(watch(folder))
        print(notes.read_text(), end="")


if __name__ == "__main__":
    main()
