"""Model profiles (limits, prices and quirks) and deployments (protocol + URL + authentication).

Both are data. A quirk is a field here, read by the protocol module; no code checks for a model by name.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from dragoman.values.usage import Prices

ProtocolName = Literal["gemini", "openai_chat", "openai_responses", "anthropic"]

UNKNOWN_CONTEXT_WINDOW = 128_000
UNKNOWN_OUTPUT_LIMIT = 8_192


_STRENGTH = {word: strength for strength, word in enumerate(("none", "minimal", "low", "medium", "high", "xhigh", "max"))}


class SmallModel(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Help for models too small to follow long instructions. Read by `loop/small_model.py` and `text_tools/wrapper.py`."""

    bound_calls: bool = False
    """Constrain every answer by a grammar to one call or text, and describe only that form. Only if tools are described as text: a service
    with native calls has its own grammar for them."""
    examples: bool = False
    """Send few-shot examples before the first message. Only with `bound_calls`."""
    short_prompt: bool = False
    """Send a short system prompt, and neither environment nor memory files."""
    few_tools: dict[str, tuple[str, ...]] = {}
    """The built-in tools to offer, each with the parameters to describe; empty: all."""
    answer_after_calls: int = 0
    """After this many successful calls in one run, or one repeated call, it may call no more and must answer; 0: never."""


SMALL_FIELDS = SmallModel.__struct_fields__


class Profile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A model's limits, prices and quirks. The defaults are what an unknown model gets: conservative, and marked as such."""

    context_window: int = UNKNOWN_CONTEXT_WINDOW
    """Tokens of input and output together (or of input alone, if the service counts that way)."""
    input_window: int = 0
    """Tokens of input, if the service takes fewer of them than the whole window; 0: as many as the window holds."""
    max_output_tokens: int = UNKNOWN_OUTPUT_LIMIT
    unstreamed_output_tokens: int = 0
    """Tokens of output in an answer that is not streamed, if the service gives fewer of them; where more are wanted, `generate` streams."""
    known: bool = True
    """False if the catalog has no row for the model: the program says so, and the limits are a conservative guess."""
    prices: Prices | None = None
    token_scale: float = 1.0
    """This model's tokens per token of our raw estimate, used until the service has counted a request."""
    cache_min_tokens: int = 0
    """Shortest prefix the service caches; 0 if unknown."""
    cache: Literal["", "none", "implicit", "key", "breakpoints"] = ""
    """How this model's prompt cache is used, if otherwise than the deployment's; empty: the same."""

    # --- what it takes and gives
    tools: Literal["native", "text"] = "native"
    dialect: str = ""
    """How it writes calls as text, one of `text_tools.dialects()`; empty: our default."""
    opens_thinking: bool = False
    """The chat template opens the model's thinking itself, so an answer begins inside it."""
    small: SmallModel | None = None
    """Special handling for a model of a few billion parameters or fewer; None: treated like any other."""
    images: bool = False
    pdfs: bool = False
    audio: bool = False
    video: bool = False
    json_schema: bool = True
    """Whether output can be constrained to a JSON schema."""
    strict_schema: bool = True
    """OpenAI: False if the service refuses to bind this model strictly to a schema (Groq: all but gpt-oss)."""
    temperature: bool = True
    """False for reasoning models that reject temperature, top_p and top_k."""

    # --- thinking
    thinking: Literal["none", "budget", "level", "adaptive", "effort", "switch", "always"] = "none"
    """How thinking is requested.

    budget: a token count (Anthropic `thinking.enabled`, Gemini 2.5 `thinkingBudget`). level: Gemini 3 `thinkingLevel`.
    adaptive: Anthropic `thinking.adaptive` with `output_config.effort`. effort: OpenAI `reasoning_effort` / `reasoning.effort`.
    switch: on or off by `thinking_switch`. always: it always thinks. none: it does not think.
    """
    efforts: tuple[str, ...] = ("none", "low", "medium", "high")
    """The words for effort that the model takes, weakest first. Ours (off, low, medium, high, max) become the word itself if it is here,
    else the next stronger one; max is the strongest, off is `none`."""
    thinking_off: bool = True
    """Whether thinking can be turned off altogether."""
    thinking_switch: Literal[
        "",
        "enable_thinking",
        "thinking.type",
        "chat_template_kwargs",
        "reasoning",
        "reasoning.enabled",
        "reasoning_effort",
    ] = ""
    """The field that switches a `switch` model (Qwen, GLM/Kimi/DeepSeek, vLLM and llama.cpp, OpenRouter with a word of `efforts`,
    Together). `reasoning_effort` turns thinking off and is else left out, because Ollama refuses an effort for models that do not think."""
    reasoning_field: str = ""
    """OpenAI Chat: the field in which thinking is sent back (`reasoning_content`, `reasoning`: as text; `reasoning_details`: as the
    service sent it, unchanged); empty: it is not sent back."""
    reasoning_back: Literal["never", "calls", "always", "given"] = "never"
    """OpenAI Chat: which assistant messages have the field: none, those with tool calls, all (both with a placeholder where there was no
    thinking), or those that have thinking. given: the service is also asked to keep the thinking of earlier turns (GLM)."""

    # --- quirks of the wire
    thinking_bound: bool = False
    """Anthropic: a thinking block is rejected once anything before it has changed, so the service is asked to drop it instead."""
    effort_with_tools: bool = True
    """OpenAI Chat: False if function tools are rejected unless `reasoning_effort` is `none`."""
    forced_tool_choice: bool = True
    """False if a tool call cannot be forced."""
    strict_template: bool = False
    """OpenAI Chat: a chat template wants user and assistant to alternate: runs of one role are merged, arguments are JSON objects, and an
    assistant message separates tool and user."""
    merge_runs: bool = False
    """OpenAI Chat: the same, but the user may follow a tool's result, as with the hosted services."""
    call_id: Literal["free", "mistral", "kept"] = "free"
    """mistral: exactly nine alphanumerics. kept: never shortened, because signatures refer to it."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer"] = "system"
    thought_signatures: bool = False
    """Gemini 3: the first function call of a model turn must carry a thought signature."""
    tool_schema: Literal["json_schema", "subset"] = "json_schema"
    """Gemini: whether declarations may use `parametersJsonSchema`, or must be reduced to the accepted subset."""
    embed_method: Literal["batch", "content", "predict"] = "batch"
    """Gemini, embedding models: `batchEmbedContents`, or on Vertex `embedContent`, and `predict` for models before gemini-embedding-2."""

    # --- waiting, on events and not on bytes
    first_event_s: float = 60.0
    between_events_s: float = 120.0
    """Between two signs of life: events of the answer, pings, and the comments that a service sends while it is at work."""
    pings_only_s: float = 1_800.0
    """How long signs of life keep a stream open in which nothing of the answer comes."""

    def effort_word(self, asked: str) -> str | None:
        """Our word for effort (off, low, medium, high, max) in one the model takes; None if it takes none at all."""
        words = [word for word in self.efforts if self.thinking_off or word != "none"]
        if asked in ("off", "max"):
            return words[0 if asked == "off" else -1] if words else None
        stronger = (word for word in words if _STRENGTH.get(word, 0) >= _STRENGTH[asked])
        return next(stronger, words[-1] if words else None)

    @property
    def prompt_window(self) -> int:
        """The most tokens a prompt may have. Never more than the window, which a user may have made smaller."""
        return min(self.input_window or self.context_window, self.context_window)


class Deployment(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Protocol + URL + authentication: where models are served, and how to access them."""

    name: str
    protocol: str
    """One of `ProtocolName`, or a protocol that another package brings: see `providers/outside.py`."""
    base_url: str
    """May hold `{VARIABLE}` or `{VARIABLE:default}`: filled from the environment when a provider is made."""
    base_url_env: tuple[str, ...] = ()
    """Environment variables that replace base_url, first set one wins."""
    auth: Literal["none", "bearer", "x-api-key", "x-goog-api-key", "api-key", "vertex"] = "bearer"
    """The header a key travels in; vertex: a Google access token."""
    key_env: tuple[str, ...] = ()
    """Environment variables that hold the key, first set one wins. Empty for servers that need none."""
    token_env: tuple[str, ...] = ()
    """Environment variables that hold a token instead, sent as `Authorization: Bearer`; used if there is no key."""
    key_optional: bool = False
    """True for local servers: a key is sent if there is one."""
    key_command: tuple[str, ...] = ()
    """A user's command that prints a token; run if there is no key, and again when the token is rejected."""
    headers: dict[str, str] = {}
    env_headers: dict[str, str] = {}
    """Headers whose value is in an environment variable, by header: sent if the variable is set."""
    headers_env: str = ""
    """An environment variable that holds more headers, one `Name: value` on each line. They may be secret."""
    default_model: str = ""
    title: str = ""
    """The display name."""
    local: bool = False
    """Served on this machine: no price, longer timeouts, and probed when nothing is configured."""
    in_process: bool = False
    """Run by the engine in this process, without a network."""
    stream_usage: bool = True
    """OpenAI Chat: whether `stream_options.include_usage` is supported."""
    reasoning_summary: bool = True
    """OpenAI Responses: whether the summary of the reasoning has to be asked for; False if the service sends it anyway (xAI)."""
    call_ids: bool = True
    """Gemini: whether functionCall and functionResponse may carry an id (Vertex v1 rejects it, v1beta1 takes it)."""
    search_flag: bool = True
    """Gemini: whether searching beside tools needs `includeServerSideToolInvocations` (Vertex does not know the field and needs none)."""
    cache: Literal["none", "implicit", "key", "breakpoints"] = "none"
    """How the prompt cache is used: implicitly, by `prompt_cache_key`, or by `cache_control` blocks."""
    requests_per_minute: Annotated[int, msgspec.Meta(ge=0)] = 0
    """At most so many are sent by this process with one key; the others wait. 0: any number."""
    tokens_per_minute: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The same for tokens, input and output."""
    embed_model: str = ""
    embed_batch: int = 0
    """The most texts that one embedding request may hold; 0: any number."""
    extra_body: dict[str, object] = {}
    """Fields added to every request unchanged, for gateways with their own switches."""
    profile: Profile = Profile(known=False)
    """The profile of models of this deployment that are not in the catalog."""
    families: dict[str, Profile] = {}
    """The profiles of other models that are not in the catalog, by how their names begin; the longest beginning wins."""
    models: dict[str, Profile] = {}
