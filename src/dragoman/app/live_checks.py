"""One small exchange for each feature of a model's protocol: what is sent, and what counts as working.

A check never judges what a model says, only whether the service took the request and the answer could be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Literal

import msgspec

from dragoman.app.live_exchange import LIMIT_TOKENS, Check, CutByLimit, LiveExchange, NotMet, Planned, Service, Skipped
from dragoman.app.live_samples import CITY_SCHEMA, CLOCK, WEATHER, long_prefix, one_page_pdf, red_square, schema_text
from dragoman.base import jsontext
from dragoman.base.text import one_line
from dragoman.values.errors import Unsupported
from dragoman.values.messages import (
    Citation,
    FinishReason,
    Request,
    Response,
    Text,
    Thinking,
    Thought,
    ToolCall,
    ToolResult,
    tool_result,
    user,
)
from dragoman.values.schema import problems
from dragoman.values.usage import Usage
from dragoman.words import say

Effort = Literal["off", "low", "medium", "high", "max"]

THOUGHT_TOKENS = 1_024
"""The smallest budget that Anthropic takes."""
EFFORT_TOKENS = 256
SEARCH_TOKENS = 20_000
"""What a service may add to the prompt for one search."""
MEDIA_TOKENS = 3_000
"""What one small image or page may count."""
MOST_CACHE_USD = 0.10
CACHE_SHARE = 1.2
"""How much longer than the shortest cached prefix ours is."""
CACHE_TRIES = 3
CACHE_WAIT_S = 2.0
CACHE_KEY = "dragoman-live-check"
EFFORTS: tuple[Effort, ...] = ("off", "low", "medium", "high", "max")
_SHOWN_CHARS = 40


def all_checks(service: Service) -> Iterator[Check]:
    yield Check("plain", _plan_plain, _check_plain)
    yield Check("stream", _plan_stream, _check_stream)
    yield Check("limit", _plan_limit, _check_limit)
    yield Check("tools", _plan_tools, _check_tools)
    yield Check("forced", _plan_forced, _check_forced)
    yield Check("thinking", _plan_thinking, _check_thinking)
    yield from _effort_checks(service)
    yield Check("image", _plan_image, _check_words)
    yield Check("pdf", _plan_pdf, _check_words)
    yield Check("schema", _plan_schema, _check_schema)
    yield Check("cache", _plan_cache, _check_cache)
    yield Check("search", _plan_search, _check_search)
    yield Check("search_tools", _plan_search_with_tools, _check_search)
    yield Check("count", _plan_plain, _check_count, is_free=True)
    yield Check("embed", _plan_embed, _check_embed)


# --- answers --------------------------------------------------------------------------------------------------------------------


def _plan_plain(service: Service) -> list[Planned]:
    return [Planned(service.request("Reply with the single word: pong"))]


async def _check_plain(exchange: LiveExchange) -> str:
    return _quoted(await exchange.generate(exchange.request))


def _plan_stream(service: Service) -> list[Planned]:
    return [Planned(service.request("Count from one to five, in words, on one line."))]


async def _check_stream(exchange: LiveExchange) -> str:
    response, pieces = await exchange.stream(exchange.request)
    if "".join(pieces) != response.message.text:
        raise NotMet(say("live_pieces_differ", pieces=one_line("".join(pieces), 60), whole=one_line(response.message.text, 60)))
    return say("live_saw_pieces", text=_quoted(response), count=len(pieces))


def _plan_limit(service: Service) -> list[Planned]:
    return [Planned(service.request("Count from 1 to 300, all numbers, nothing else.", limit=LIMIT_TOKENS))]


async def _check_limit(exchange: LiveExchange) -> str:
    try:
        response, _ = await exchange.stream(exchange.request)
    except CutByLimit:
        return say("live_limit_as_error")
    if response.finish != FinishReason.LENGTH:
        raise NotMet(say("live_not_cut", finish=response.raw_finish or response.finish, limit=LIMIT_TOKENS))
    return say("live_saw_limit", finish=response.raw_finish or response.finish)


# --- tools ----------------------------------------------------------------------------------------------------------------------


def _plan_tools(service: Service) -> list[Planned]:
    asked = "Call get_weather for Paris and get_weather for Atlantis, both at once. Then say in five words what you found."
    request = msgspec.structs.replace(service.request(asked), tools=(WEATHER, CLOCK))
    return _loop_of(request)


def _loop_of(request: Request) -> list[Planned]:
    """A request that is answered with calls, and the one with their results."""
    return [Planned(request), Planned(request, more_tokens=200 + (request.settings.max_output_tokens or 0))]


async def _check_tools(exchange: LiveExchange) -> str:
    response, _ = await exchange.stream(exchange.request)
    calls = _calls_of(response)
    await exchange.stream(_with_results(exchange.request, response))
    if len(calls) == 1:
        exchange.note(say("live_one_call"))
    return say("live_saw_calls", count=len(calls))


def _calls_of(response: Response) -> tuple[ToolCall, ...]:
    calls = response.message.calls
    if not calls:
        raise NotMet(say("live_no_call", text=_quoted(response)))
    for call in calls:
        if call.args is None:
            raise NotMet(say("live_bad_arguments", arguments=one_line(call.arguments, 80)))
    return calls


def _with_results(request: Request, response: Response) -> Request:
    """The next request of a tool loop. The answer goes back as it came, with all that only the service can read; the last result is
    an error."""
    *others, last = response.message.calls
    results: list[ToolResult] = [tool_result(call, "Sunny, 21 °C.") for call in others]
    results.append(tool_result(last, "There is no such city.", is_error=True))
    return msgspec.structs.replace(request, messages=(*request.messages, response.message, user(*results)))


def _plan_forced(service: Service) -> list[Planned]:
    if not service.profile.forced_tool_choice:
        raise Unsupported(say("live_no_forcing"))
    request = service.request("Good morning!", tool_choice=CLOCK.name)
    return [Planned(msgspec.structs.replace(request, tools=(WEATHER, CLOCK)))]


async def _check_forced(exchange: LiveExchange) -> str:
    response, _ = await exchange.stream(exchange.request)
    calls = _calls_of(response)
    if any(call.name != CLOCK.name for call in calls):
        raise NotMet(say("live_wrong_call", wanted=CLOCK.name, called=", ".join(call.name for call in calls)))
    return say("live_saw_forced", name=CLOCK.name)


# --- thinking -------------------------------------------------------------------------------------------------------------------


def _plan_thinking(service: Service) -> list[Planned]:
    if service.profile.thinking == "none":
        raise Unsupported(say("live_no_thinking"))
    asked = "Which is warmer now, Paris or Rome? Think about which tools you need, then call get_weather for both cities."
    request = service.request(asked, limit=THOUGHT_TOKENS + 512, thinking=Thinking("medium", THOUGHT_TOKENS))
    return _loop_of(msgspec.structs.replace(request, tools=(WEATHER,)))


async def _check_thinking(exchange: LiveExchange) -> str:
    response, _ = await exchange.stream(exchange.request)
    _calls_of(response)
    await exchange.stream(_with_results(exchange.request, response))
    parts = response.message.parts
    chars = sum(len(part.text) for part in parts if isinstance(part, Thought))
    signed = sum(isinstance(part, Thought | ToolCall | Text) and part.opaque is not None for part in parts)
    if not (chars or signed or response.usage.thought_tokens):
        exchange.note(say("live_no_thought_seen"))
    return say("live_saw_thinking", chars=chars, signed=signed)


def _effort_checks(service: Service) -> Iterator[Check]:
    """One for each word that makes a different request: several of ours may mean the same to a model."""
    bare = service.request("What is 17 times 3? Answer with the number.", limit=EFFORT_TOKENS)
    if service.profile.thinking == "budget":
        bare = _with_limit(bare, THOUGHT_TOKENS + EFFORT_TOKENS)
    seen = {_body(service, bare)}
    count = 0
    for word in EFFORTS if service.profile.thinking != "none" else ():
        request = msgspec.structs.replace(bare, settings=msgspec.structs.replace(bare.settings, thinking=Thinking(word)))
        if (body := _body(service, request)) not in seen:
            seen.add(body)
            count += 1
            yield Check(f"effort_{word}", lambda _, request=request: [Planned(request)], _check_effort)
    if not count:
        yield Check("effort", _plan_no_effort, _check_effort)


def _with_limit(request: Request, limit: int) -> Request:
    return msgspec.structs.replace(request, settings=msgspec.structs.replace(request.settings, max_output_tokens=limit))


def _body(service: Service, request: Request) -> bytes:
    return service.provider.prepare(request).body


def _plan_no_effort(service: Service) -> list[Planned]:
    raise Unsupported(say("live_no_thinking") if service.profile.thinking == "none" else say("live_no_effort"))


async def _check_effort(exchange: LiveExchange) -> str:
    try:
        response, _ = await exchange.stream(exchange.request)
    except CutByLimit:
        return say("live_limit_as_error")
    return say("live_saw_effort", tokens=response.usage.thought_tokens)


# --- media and structured output --------------------------------------------------------------------------------------------------


def _plan_image(service: Service) -> list[Planned]:
    if not service.profile.images:
        raise Unsupported(say("live_no_images"))
    return _with_media(service, "image/png", red_square(), "Which colour is this image? Answer with one word.")


def _plan_pdf(service: Service) -> list[Planned]:
    if not service.profile.pdfs:
        raise Unsupported(say("live_no_pdfs"))
    return _with_media(service, "application/pdf", one_page_pdf(), "Which number does this page name? Answer with the number.")


def _with_media(service: Service, mime: str, data: bytes, question: str) -> list[Planned]:
    blobs = service.provider.blobs
    if blobs is None:
        raise Skipped(say("live_no_blobs"))
    return [Planned(service.request(user(blobs.put(mime, data), question)), more_tokens=MEDIA_TOKENS)]


async def _check_words(exchange: LiveExchange) -> str:
    return _quoted((await exchange.stream(exchange.request))[0])


def _plan_schema(service: Service) -> list[Planned]:
    asked = (
        "Describe Paris: its river, a rating of 4, and the distances in km to Lyon (392) and Lille (204) by city name. "
        "Answer with JSON that fits the schema."
    )
    return [Planned(service.request(asked, response_mime="application/json", response_schema=schema_text()))]


async def _check_schema(exchange: LiveExchange) -> str:
    response = await exchange.generate(exchange.request)
    try:
        value = jsontext.decode(response.message.text)
    except jsontext.NotJSON:
        raise NotMet(say("live_not_json", text=_quoted(response))) from None
    if faults := problems(CITY_SCHEMA, value):
        raise NotMet(say("live_does_not_fit", problems="; ".join(faults)))
    if not value["distances_km"]:
        exchange.note(say("live_empty_map"))
    return say("live_saw_schema", count=len(value["distances_km"]))


# --- the prompt cache -------------------------------------------------------------------------------------------------------------


def _plan_cache(service: Service) -> list[Planned]:
    if service.cache == "none":
        raise Unsupported(say("live_no_cache"))
    if not service.profile.cache_min_tokens:
        raise Skipped(say("live_cache_min_unknown"))
    prefix = long_prefix(int(service.profile.cache_min_tokens * CACHE_SHARE))
    request = msgspec.structs.replace(service.request("Which shelf is first?"), system=prefix, cache_key=CACHE_KEY)
    prices = service.profile.prices
    most = prices.cost_usd(Usage(fresh_tokens=CACHE_TRIES * len(prefix) // 3)) if prices else 0.0
    if most > MOST_CACHE_USD:
        raise Skipped(say("live_cache_too_dear", cost=most, most=MOST_CACHE_USD))
    return [Planned(request)] * CACHE_TRIES


async def _check_cache(exchange: LiveExchange) -> str:
    wrote = 0
    for attempt in range(CACHE_TRIES):
        if attempt > 1:
            await asyncio.sleep(CACHE_WAIT_S)  # a cache may take a moment until it can be read
        response, _ = await exchange.stream(exchange.request)
        wrote += response.usage.cache_write_tokens
        if attempt and response.usage.cache_read_tokens:
            return say("live_saw_cache", read=response.usage.cache_read_tokens, input=response.usage.input_tokens)
    if exchange.service.cache == "breakpoints":
        raise NotMet(say("live_nothing_cached", wrote=wrote))
    exchange.note(say("live_cache_best_effort"))
    return say("live_saw_no_cache")


# --- searching, counting, embedding -------------------------------------------------------------------------------------------------


def _plan_search(service: Service) -> list[Planned]:
    return [
        Planned(service.request("Search the web: which Python release is the newest? Answer in ten words.", search=True), SEARCH_TOKENS)
    ]


def _plan_search_with_tools(service: Service) -> list[Planned]:
    asked = "Search the web for the newest Python release. Answer in ten words, and call no other tool."
    request = msgspec.structs.replace(service.request(asked, search=True), tools=(WEATHER,))
    return [Planned(request, SEARCH_TOKENS)]


async def _check_search(exchange: LiveExchange) -> str:
    response, _ = await exchange.stream(exchange.request)
    citations = sum(isinstance(part, Citation) for part in response.message.parts)
    if not citations:
        exchange.note(say("live_no_citations"))
    return say("live_saw_search", count=citations)


async def _check_count(exchange: LiveExchange) -> str:
    count = await exchange.wait_for(exchange.service.provider.count_tokens(exchange.request))
    return say("live_saw_count", count=count)


def _plan_embed(service: Service) -> list[Planned]:
    if service.deployment is None or not service.deployment.embed_model:
        raise Unsupported(say("live_no_embed_model"))
    return [Planned(Request(service.deployment.embed_model, (user("a cat", "a dog"),)))]


async def _check_embed(exchange: LiveExchange) -> str:
    vectors = await exchange.wait_for(exchange.service.provider.embed(["a cat", "a dog"]))
    sizes = {len(vector) for vector in vectors}
    if len(vectors) != 2 or len(sizes) != 1 or 0 in sizes:
        raise NotMet(say("live_wrong_vectors", count=len(vectors)))
    return say("live_saw_vectors", model=exchange.request.model, size=sizes.pop())


def _quoted(response: Response) -> str:
    text = one_line(response.message.text, _SHOWN_CHARS)
    return f"“{text}”" if text else say("live_no_text")
