"""What a model is: its limits, prices and quirks. What a deployment is: protocol + URL + auth.

Both are data. A quirk is a field here, read by the protocol module; no code asks for a model by name.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.values.usage import Prices

ProtocolName = Literal["gemini", "openai_chat", "openai_responses", "anthropic"]

UNKNOWN_CONTEXT_WINDOW = 128_000
UNKNOWN_OUTPUT_LIMIT = 8_192


class Profile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A model's limits, prices and quirks. The defaults are what an unknown model gets: conservative, and marked as such."""

    context_window: int = UNKNOWN_CONTEXT_WINDOW
    """Tokens of input and output together (or of input alone, where the service counts so)."""
    max_output_tokens: int = UNKNOWN_OUTPUT_LIMIT
    known: bool = True
    """False where the catalog has no row for the model: the program says so, and the limits are a guess on the safe side."""
    prices: Prices | None = None
    token_scale: float = 1.0
    """Tokens this model makes of one of our raw estimate, to go by until it has counted a request itself."""
    cache_min_tokens: int = 0
    """Shortest prefix the service caches; 0 where it does not say."""

    # --- what it takes and gives
    tools: Literal["native", "text"] = "native"
    dialect: str = ""
    """How it writes calls as text, where it does; empty: our own default. One of `text_tools.dialects()`."""
    opens_thinking: bool = False
    """The chat template opens the model's thinking itself: an answer begins within it."""
    bound_calls: bool = False
    """Every answer is bound by a grammar to one call or words, and the model is told that form: for models too small to write a call that
    can be read. Where tools are told as text: a service that knows calls has a grammar of its own for them."""
    examples: bool = False
    """It is shown a few exchanges before the first message, in which files are looked into before anything is said of them. Where its calls
    are bound."""
    short_prompt: bool = False
    """It loses its thread in a long prompt: it gets a short one, and is told neither of its surroundings nor what memory files say."""
    few_tools: dict[str, tuple[str, ...]] = {}
    """The tools it can keep apart, with those of their parameters it is told of; empty: it is offered all there are."""
    answer_after_calls: int = 0
    """After so many calls in one run that went well, or one that was made twice, it may call no more and has to answer; 0: never."""
    images: bool = False
    pdfs: bool = False
    audio: bool = False
    json_schema: bool = True
    """Whether output can be constrained to a JSON schema."""
    temperature: bool = True
    """False for reasoning models that reject temperature, top_p and top_k."""

    # --- thinking
    thinking: Literal["none", "budget", "level", "adaptive", "effort", "switch", "always"] = "none"
    """How thinking is asked for.

    budget: a token count (Anthropic `thinking.enabled`, Gemini 2.5 `thinkingBudget`). level: Gemini 3 `thinkingLevel`.
    adaptive: Anthropic `thinking.adaptive` with `output_config.effort`. effort: OpenAI `reasoning_effort` / `reasoning.effort`.
    switch: on or off by `thinking_switch`. always: it thinks and cannot be told otherwise. none: it does not think.
    """
    thinking_off: bool = True
    """Whether thinking can be turned off altogether."""
    thinking_switch: Literal["", "enable_thinking", "thinking.type", "chat_template_kwargs", "reasoning"] = ""
    """The field a `switch` model is switched by (Qwen, GLM/Kimi/DeepSeek, vLLM and llama.cpp, OpenRouter)."""
    reasoning_field: str = ""
    """OpenAI Chat: the field in which thinking is sent back (`reasoning_content`, `reasoning`); empty: it is not sent back."""
    reasoning_back: Literal["never", "calls", "always"] = "never"
    """OpenAI Chat: on which assistant messages the field must stand: none, those with tool calls, all."""

    # --- quirks of the wire
    thinking_bound: bool = False
    """Anthropic: a thinking block is refused once anything before it has changed, so the service is asked to drop it instead."""
    effort_with_tools: bool = True
    """OpenAI Chat: False where function tools are refused unless `reasoning_effort` is `none`."""
    forced_tool_choice: bool = True
    """False where a tool cannot be forced, only offered."""
    strict_template: bool = False
    """OpenAI Chat: user and assistant must alternate: runs of one role are merged, and the assistant has a word between tool and user."""
    call_id: Literal["free", "mistral"] = "free"
    """mistral: exactly nine alphanumerics."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer"] = "system"
    thought_signatures: bool = False
    """Gemini 3: the first function call of a model turn must carry a thought signature."""
    tool_schema: Literal["json_schema", "subset"] = "json_schema"
    """Gemini: whether declarations may use `parametersJsonSchema`, or must be reduced to the accepted subset."""

    # --- waiting, on events and not on bytes
    first_event_s: float = 60.0
    between_events_s: float = 120.0


class Deployment(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Protocol + URL + auth: where models are served, and how one gets in."""

    name: str
    protocol: ProtocolName
    base_url: str
    """May hold `{VARIABLE}` or `{VARIABLE:default}`: filled from the environment when a provider is made."""
    base_url_env: tuple[str, ...] = ()
    """Environment variables that replace base_url, first set one wins."""
    auth: Literal["none", "bearer", "x-api-key", "x-goog-api-key", "api-key", "vertex"] = "bearer"
    """The header a key travels in; vertex: a Google access token."""
    key_env: tuple[str, ...] = ()
    """Environment variables that hold the key, first set one wins. Empty for servers that need none."""
    key_optional: bool = False
    """True for local servers: a key is sent if there is one."""
    key_command: tuple[str, ...] = ()
    """A command of the user's that prints a token; run when there is no key, and again when the token is refused."""
    headers: dict[str, str] = {}
    default_model: str = ""
    title: str = ""
    """The name a person knows it by."""
    local: bool = False
    """Served on this machine: no price, longer waits, and probed when nothing is configured."""
    in_process: bool = False
    """Run by the engine within this process: there is no network between."""
    stream_usage: bool = True
    """OpenAI Chat: whether `stream_options.include_usage` is understood."""
    call_ids: bool = True
    """Gemini: whether functionCall and functionResponse may carry an id (Vertex refuses it)."""
    cache: Literal["none", "implicit", "key", "breakpoints"] = "none"
    """How the prompt cache is addressed: by itself, by `prompt_cache_key`, or by `cache_control` blocks."""
    embed_model: str = ""
    extra_body: dict[str, object] = {}
    """Fields added to every request as they are, for gateways with switches of their own."""
    profile: Profile = Profile(known=False)
    """What a model of this deployment is taken for when the catalog does not know it."""
    models: dict[str, Profile] = {}
