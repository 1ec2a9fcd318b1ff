"""Making a request of a long history. `python -m benchmarks.render WHO PROTOCOL COUNT` makes some and says what they cost."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from benchmarks import history, ours, sample, sdks
from benchmarks.recording import PROTOCOLS, recorded
from benchmarks.sample import best, interleaved, median, module, peak_rss_mib
from benchmarks.table import Table

WHO = ("ours", "floor", "SDK")
WARM = 7
"""How often the same messages are asked for again; and how often two are added."""


def run(quick: bool) -> list[Table]:
    count, repetitions = (500, 1) if quick else (5_000, 5)
    columns = ["protocol", "MB", "cold ms, best", "cold median", "warm ms", "warm + 2 ms", "rendered", "floor ms", "SDK ms"]
    table = Table(f"Requests of {count:,} messages: CPU ms", [*columns, "cold × floor", "warm + 2 × floor", "SDK × warm + 2"])
    traced = ["traced peak, ours cold", "traced, floor", "traced, SDK", "traced, ours warm"]
    memory = Table(f"Memory for requests of {count:,} messages: MiB", ["protocol", *traced, "RSS, ours", "RSS, floor", "RSS, SDK"])
    for protocol in PROTOCOLS:
        argv = {who: module("render", who, protocol, str(count)) for who in WHO}
        samples = interleaved({who: lambda argv=argv[who]: json.loads(sample.run(argv).said) for who in WHO}, repetitions)

        def least(who: str, key: str, samples: dict[str, list[dict[str, float]]] = samples) -> float:
            return best([each[key] for each in samples[who]])

        made, cold = samples["ours"], least("ours", "cold")
        rendered = " + ".join(f"{made[0][key]:,.0f}" for key in ("rendered_cold", "rendered_warm", "rendered_grown"))
        times = [cold, median([each["cold"] for each in made]), least("ours", "warm"), least("ours", "grown")]
        floor, sdk = least("floor", "each"), least("SDK", "each")
        ratios = [cold / floor, least("ours", "grown") / floor, sdk / least("ours", "grown")]
        table.rows.append([protocol, made[0]["bytes"] / 1e6, *times, rendered, floor, sdk, *ratios])
        peaks = [*(least(who, "peak_mib") for who in WHO), least("ours", "warm_peak_mib")]
        memory.rows.append([protocol, *peaks, *(least(who, "rss_mib") for who in WHO)])
    table.notes = [
        "Cold: the first request of a provider. Warm: the same messages again. Warm + 2: a request with two more messages.",
        "Rendered: messages rendered for the cold, the warm and the grown request. It is checked: all, none, two.",
        "Floor: json.dumps of the equivalent body, compact, to UTF-8, every time.",
        "SDK: its synchronous call with `stream=True`, from the equivalent arguments to an httpx2.MockTransport that answers at once: its"
        " transformation, its JSON and httpx2's request. OpenAI's and Anthropic's are given dicts, google-genai its own Content objects.",
        f"Every sample is a fresh process; best of {repetitions} interleaved rounds, inside each the best of {WARM}.",
    ]
    memory.notes = [
        "Traced: tracemalloc's peak during one request, over what was held before it; the body that is made is in it.",
        "RSS: the peak of the process before tracing, imports and history included. The floor's and the SDK's processes have first made the"
        " equivalent body with our renderer, so theirs is an upper bound: compare the traced peaks.",
    ]
    return [table, memory]


def worker(who: str, protocol: str, count: str) -> None:
    provider = ours.provider(protocol, "http://127.0.0.1:1").provider
    model = ours.MODELS[protocol].partition("/")[2]
    messages = history.messages(int(count))
    if who == "ours":
        print(json.dumps(_ours(protocol, model, messages)))
        return
    body = json.loads(provider.prepare(history.request(model, messages)).body)
    del provider, messages
    print(json.dumps(_again(_floor(body) if who == "floor" else _sdk(protocol, body))))


def _ours(protocol: str, model: str, messages: tuple[Any, ...]) -> dict[str, float]:
    told: dict[str, float] = {}
    cold, warm, grown = [], [], []
    for _ in range(3):
        provider: Any = ours.provider(protocol, "http://127.0.0.1:1").provider
        history_request = history.request(model, messages)
        cold.append(_cpu_ms(lambda provider=provider, asked=history_request: provider.prepare(asked)))
    told["rendered_cold"] = provider.messages_rendered(model)
    for _ in range(WARM):
        again = history.request(model, tuple(messages))
        warm.append(_cpu_ms(lambda again=again: provider.prepare(again)))
    told["rendered_warm"] = provider.messages_rendered(model) - told["rendered_cold"]
    longer = messages
    for _ in range(WARM):
        rendered = provider.messages_rendered(model)
        longer += history.messages(2, len(longer))
        asked = history.request(model, longer)
        grown.append(_cpu_ms(lambda asked=asked: provider.prepare(asked)))
        told["rendered_grown"] = provider.messages_rendered(model) - rendered
        assert told["rendered_grown"] == 2
    assert (told["rendered_cold"], told["rendered_warm"]) == (len(messages), 0)
    told |= {"cold": min(cold), "warm": min(warm), "grown": min(grown), "rss_mib": peak_rss_mib()}
    told["bytes"] = len(provider.prepare(history_request).body)
    fresh: Any = ours.provider(protocol, "http://127.0.0.1:1").provider
    told["peak_mib"] = _peak_mib(lambda: fresh.prepare(history_request))
    told["warm_peak_mib"] = _peak_mib(lambda: fresh.prepare(history_request))
    return told


def _floor(body: dict[str, Any]) -> Callable[[], object]:
    return lambda: json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _sdk(protocol: Any, body: dict[str, Any]) -> Callable[[], object]:
    import httpx2

    short = recorded(protocol, 1)
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=iter([short])))
    client: Any = sdks.client(protocol, "http://127.0.0.1:1", sync=True, transport=transport)
    arguments = history.sdk_arguments(protocol, body)
    match protocol:
        case "openai_chat":
            return lambda: client.chat.completions.create(**arguments)
        case "openai_responses":
            return lambda: client.responses.create(**arguments)
        case "anthropic":
            return lambda: client.messages.create(**arguments)
        case _:
            return lambda: next(iter(client.models.generate_content_stream(**arguments)))


def _again(make: Callable[[], object]) -> dict[str, float]:
    make()
    told = {"each": min(_cpu_ms(make) for _ in range(WARM)), "rss_mib": peak_rss_mib()}
    return told | {"peak_mib": _peak_mib(make)}


def _cpu_ms(make: Callable[[], object]) -> float:
    before = time.process_time()
    make()
    return (time.process_time() - before) * 1000


def _peak_mib(make: Callable[[], object]) -> float:
    tracemalloc.start()
    make()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1024 / 1024


if __name__ == "__main__":
    worker(*sys.argv[1:])
