"""From the start of a process to the first byte of its request, seen by a server on the same machine."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import sample
from benchmarks.listener import Listener, listening
from benchmarks.recording import PROTOCOLS, recorded
from benchmarks.sample import HERE, SDK, best, interleaved, median, python
from benchmarks.table import Table

CLIENTS = {
    "floor": (HERE / "floor.py",),
    "ours": (HERE / "ours.py",),
    "SDK, async": (HERE / "sdks.py",),
    "SDK, sync": (HERE / "sdks.py", "--sync"),
}


def run(quick: bool) -> list[Table]:
    columns = ["protocol", "client", "to first byte ms, best", "first byte median", "CPU ms, best", "CPU median"]
    table = Table("Process start to first request byte", [*columns, "first byte × floor", "CPU × floor", "CPU × ours"])
    for protocol in PROTOCOLS:
        with listening(recorded(protocol, 1)) as listener:
            argv = {client: python(*map(str, files), protocol, listener.url, "Hello") for client, files in CLIENTS.items()}
            cases = {client: lambda argv=argv[client], listener=listener: _ask(argv, listener) for client in CLIENTS}
            samples = interleaved(cases, 2 if quick else 9)
        wall = {client: [first for first, _ in taken] for client, taken in samples.items()}
        cpu = {client: [cost for _, cost in taken] for client, taken in samples.items()}
        for client in CLIENTS:
            first, cost = best(wall[client]), best(cpu[client])
            ratios = [first / best(wall["floor"]), cost / best(cpu["floor"]), cost / best(cpu["ours"])]
            name = client.replace("SDK", SDK[protocol])
            table.rows.append([protocol, name, first, median(wall[client]), cost, median(cpu[client]), *ratios])
    table.notes = [
        "To first byte: wall time from just before the process is started until the server has read something of the request.",
        "CPU: the whole process, from start to exit, with one short streamed answer. The floor is http.client and json, synchronous.",
        f"{len(wall['ours'])} interleaved rounds per protocol, bytecode cached. All over plain http: no certificate store is read by ours.",
    ]
    return [table]


def _ask(argv: Sequence[str], listener: Listener) -> tuple[float, float]:
    taken = sample.run(argv)
    prompt, length, _ = taken.said.split()
    assert (prompt, length) == ("Hello", "6"), taken.said
    return (listener.first_byte_s() - taken.started_s) * 1000, taken.cpu_ms
