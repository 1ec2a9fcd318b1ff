"""Reading a long stream. `python -m benchmarks.decode WHO PROTOCOL SHAPE FILE [--trace]` reads one recording and says what it cost."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import floor, ours, sample, sdks
from benchmarks.listener import LONG, listening
from benchmarks.recording import PROTOCOLS, Shape, arguments, chunks, prose, recorded
from benchmarks.sample import HERE, SDK, best, interleaved, median, module, python
from benchmarks.table import Table

WHO = ("ours", "floor", "SDK")
CLIENTS = {"ours": HERE / "ours.py", "floor": HERE / "floor.py", "SDK": HERE / "sdks.py"}


def run(quick: bool) -> Iterator[Table]:
    deltas = 2_000 if quick else 20_000
    yield from_memory(deltas, 1 if quick else 5)
    yield over_http("Reading a stream over loopback HTTP, as fast as the server writes", deltas, 0.0, 1 if quick else 5)
    yield over_http("Reading a stream over loopback HTTP, one event every millisecond", deltas // 10, 1.0, 1 if quick else 3)


# --- without a network ---------------------------------------------------------------------------------------------------


def from_memory(deltas: int, repetitions: int) -> Table:
    columns = ["protocol", "deltas of", "ours µs, best", "ours median", "floor µs", "SDK µs", "ours × floor", "SDK × ours"]
    memory_columns = ["peak KiB, ours", "peak KiB, floor", "peak KiB, SDK"]
    table = Table(f"Decoding {deltas:,} chunks from memory: µs CPU per chunk", columns + memory_columns)
    with TemporaryDirectory() as folder:
        for protocol in PROTOCOLS:
            for shape in ("text", "arguments") if protocol != "gemini" else ("text",):
                path = Path(folder, f"{protocol}-{shape}")
                path.write_bytes(recorded(protocol, deltas, shape))
                argv = {who: module("decode", who, protocol, shape, str(path)) for who in WHO}
                samples = interleaved({who: lambda argv=argv[who]: json.loads(sample.run(argv).said) for who in WHO}, repetitions)
                cost = {who: [each["cpu_us"] for each in taken] for who, taken in samples.items()}
                memory = [json.loads(sample.run([*argv[who], "--trace"]).said)["peak_kib"] for who in WHO]
                times = [best(cost["ours"]), median(cost["ours"]), best(cost["floor"]), best(cost["SDK"])]
                ratios = [best(cost["ours"]) / best(cost["floor"]), best(cost["SDK"]) / best(cost["ours"])]
                table.rows.append([protocol, shape, *times, *ratios, *memory])
    table.notes = [
        "One server-sent event per chunk, as the loopback server's encoders write it. Ours: SSEDecoder and the protocol's decoder, events"
        " read, whole answer built. Floor: split at blank lines, json.loads, join the text.",
        "SDK: its synchronous client, raw stream (`create(stream=True)`, `generate_content_stream`), fed by an httpx2.MockTransport"
        " whose body is an iterator over the same chunks. It builds no whole answer.",
        "Gemini sends a call's arguments whole. Peak: tracemalloc, in a process of its own, over what was held before.",
        f"Every sample is a fresh process, after a warm-up on a short stream; best of {repetitions} interleaved rounds.",
    ]
    return table


def worker(who: str, protocol: Any, shape: Shape, path: str, trace: str = "") -> None:
    read = {"ours": _ours, "floor": _floor, "SDK": _sdk}[who](protocol)
    stream = chunks(Path(path).read_bytes())
    read(chunks(recorded(protocol, 200, shape)))
    if trace:
        tracemalloc.start()
        read(stream)
        print(json.dumps({"peak_kib": tracemalloc.get_traced_memory()[1] / 1024}))
        return
    before = time.process_time()
    text = read(stream)
    spent = time.process_time() - before
    print(json.dumps({"cpu_us": spent * 1e6 / _deltas(text, shape)}))


def _deltas(text: str, shape: Shape) -> int:
    """How many deltas made up this text; it must be exactly what was recorded."""
    deltas = -(-len(text) // 6)
    assert text == (prose(deltas) if shape == "text" else arguments(deltas)), f"read something else: {text[:60]!r}"
    return deltas


def _ours(protocol: Any) -> Callable[[list[bytes]], str]:
    from dragoman.events import TextDelta, ToolCallDelta
    from dragoman.http.sse import SSEDecoder
    from dragoman.providers.catalog import builtin_catalog, profile_for
    from dragoman.providers.wire import Destination

    wire: Any = import_module(f"dragoman.providers.{protocol}")
    deployment, model = builtin_catalog().find(ours.MODELS[protocol])
    to = Destination(deployment, profile_for(deployment, model), model)

    def read(stream: list[bytes]) -> str:
        sse, decoder, pieces = SSEDecoder(), wire.decoder(to, set), []
        for chunk in stream:
            for name, data in sse.feed(chunk):
                for event in decoder.feed(name, data) or ():
                    if isinstance(event, TextDelta):
                        pieces.append(event.text)
                    elif isinstance(event, ToolCallDelta):
                        pieces.append(event.arguments)
        decoder.close()
        return "".join(pieces)

    return read


def _floor(protocol: Any) -> Callable[[list[bytes]], str]:
    return lambda stream: floor.read(protocol, stream)


def _sdk(protocol: Any) -> Callable[[list[bytes]], str]:
    import httpx2

    body: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=iter(body))

    client = sdks.client(protocol, "http://127.0.0.1:1", sync=True, transport=httpx2.MockTransport(answer))

    def read(stream: list[bytes]) -> str:
        body[:] = stream
        return sdks.read(protocol, client, "Hello")

    return read


# --- over loopback HTTP --------------------------------------------------------------------------------------------------


def over_http(title: str, deltas: int, gap_ms: float, repetitions: int) -> Table:
    columns = ["protocol", *(f"{who} {kind}" for who in WHO for kind in ("µs, best", "median")), "ours × floor", "SDK × ours"]
    table = Table(f"{title}: µs CPU of the client per chunk, {deltas:,} chunks", columns)
    for protocol in PROTOCOLS:
        with listening(recorded(protocol, 10), recorded(protocol, deltas), gap_ms) as listener:
            argv = {who: python(str(file), protocol, listener.url, "Hello", LONG) for who, file in CLIENTS.items()}
            samples = interleaved({who: lambda argv=argv[who]: _cpu_us(argv, deltas) for who in WHO}, repetitions)
        times = [time_us for who in WHO for time_us in (best(samples[who]), median(samples[who]))]
        ratios = [best(samples["ours"]) / best(samples["floor"]), best(samples["SDK"]) / best(samples["ours"])]
        table.rows.append([protocol, *times, *ratios])
    table.notes = [
        "The server is another process; every event is an HTTP chunk and a write of its own. Ours and the SDKs run on asyncio, the floor"
        " is synchronous http.client. CPU of the client process for the long request, after a short one that loads and connects.",
        f"SDKs: {', '.join(dict.fromkeys(SDK.values()))}. Every sample is a fresh process; {repetitions} interleaved rounds.",
    ]
    return table


def _cpu_us(argv: list[str], deltas: int) -> float:
    line = sample.run(argv).said.splitlines()[-1]
    prompt, length, spent_s = line.split()
    assert (prompt, int(length)) == (LONG, deltas * 6), line
    return float(spent_s) * 1e6 / deltas


if __name__ == "__main__":
    worker(*sys.argv[1:])
