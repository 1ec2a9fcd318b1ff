"""Background commands in the conversation: shown when they start and end, listed and stopped, and gone when the program is left."""

from __future__ import annotations

import time
from collections.abc import Callable

from processes import alive, gone_within, marked_sleep
from program import Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]


def test_they_are_listed_and_stopped(place: Place, serve: Serve) -> None:
    sleep = marked_sleep()
    service = serve(
        script(calls(("run_shell", {"command": f"env {sleep}", "background": True, "writes": True})), "text: Started.", "text: I see.")
    )
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("/ps")
        assert "no command was left running" in shown.prompt()
        shown.ask("start it")
        assert "(in the background)" in shown.expect("Run it?", "run): ")
        shown.send("y")
        assert "bg1: running" in shown.expect("Started.")
        shown.prompt()
        shown.ask("/ps")
        said = shown.prompt()
        assert "bg1  running" in said
        assert sleep in said
        shown.ask("/stop")
        assert "/stop ID ends" in shown.prompt()
        shown.ask("/stop bg2")
        assert "no background command bg2" in shown.prompt()
        assert alive(sleep)
        shown.ask("/stop bg1")
        assert "bg1 was ended" in shown.prompt()
        assert gone_within(60, sleep)
        shown.ask("and now?")
        assert "has ended: stopped" in shown.expect("I see.")
    assert "the user stopped it" in str(service.requests[-1])


def test_one_is_read_while_the_user_types_and_ends_with_the_program(place: Place, serve: Serve) -> None:
    sleep = marked_sleep()
    command = f"sleep 0.6; yes | head -c 1000000; touch printed; {sleep}"  # more than a pipe holds
    serve(script(calls(("run_shell", {"command": command, "background": True, "writes": True})), "text: Started."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("start it")
        shown.expect("Run it?", "run): ")
        shown.send("y")
        shown.expect("Started.")
        shown.prompt()
        shown.ask("/usage")  # no run is under way from here on
        shown.prompt()
        assert _appears(place, "printed")
        assert alive(sleep)
        shown.ask("/quit")
        shown.process.wait(60)
        assert gone_within(60, sleep)


def _appears(place: Place, name: str) -> bool:
    deadline = time.monotonic() + 60
    while not (place.work / name).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_run_that_looks_at_its_command_again_and_again_goes_on(place: Place, serve: Serve) -> None:
    command = "while true; do echo x; sleep 0.05; done"
    begin = calls(("run_shell", {"command": command, "background": True}))
    service = serve(script(begin, *[calls(("shell_output", {"id": "bg1"}))] * 25, "text: Still at it."))
    done = place.ask("watch it")
    assert (done.code, done.out) == (0, "Still at it.\n"), done
    assert "going in circles" not in str(service.requests[-1])
