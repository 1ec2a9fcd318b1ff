"""docs/reference/services.md: the services and models of the catalog. `python -m checks.marked services` writes it."""

from __future__ import annotations

from checks.marked import REFERENCE, Part, table
from dragoman import builtin_catalog
from dragoman.values.profile import Deployment, Profile
from dragoman.values.usage import Prices

PROTOCOLS = {
    "gemini": "Gemini",
    "openai_chat": "Chat Completions",
    "openai_responses": "Responses",
    "anthropic": "Messages",
}
TAKES = ("images", "pdfs", "audio", "video")


def services() -> str:
    rows = [_service(each) for each in _deployments()]
    return table(("name", "service", "protocol", "key", "base URL"), rows)


def models() -> str:
    return "\n\n".join(f"### {each.name}\n\n{_models(each)}" for each in _deployments() if each.models)


def _service(each: Deployment) -> tuple[str, ...]:
    keys = [f"`{name}`" for name in (*each.key_env, *each.token_env)]
    key = " or ".join(keys) or "none"
    if each.auth == "vertex":
        key = f"Google credentials, {key}"
    if each.local and keys:
        key += ", if the server wants one"
    url = " or ".join(f"`{name}`" for name in each.base_url_env)
    name = f"[`{each.name}`](#{each.name})" if each.models else f"`{each.name}`"
    return (name, each.title, PROTOCOLS[each.protocol], key, f"{url}, else `{each.base_url}`" if url else f"`{each.base_url}`")


def _models(deployment: Deployment) -> str:
    rows = [_model(deployment, name, profile) for name, profile in deployment.models.items()]
    return table(("model", "window", "longest answer", "input", "output", "from cache", "takes"), rows)


def _model(deployment: Deployment, name: str, profile: Profile) -> tuple[str, ...]:
    shown = f"`{name}`" + (" (default)" if name == deployment.default_model else "")
    takes = ", ".join(each.replace("pdfs", "PDF") for each in TAKES if getattr(profile, each))
    return (shown, f"{profile.prompt_window:,}", f"{profile.max_output_tokens:,}", *_prices(profile.prices), takes)


def _prices(prices: Prices | None) -> tuple[str, str, str]:
    if prices is None:
        return "", "", ""
    mark = " \\*" if prices.above is not None else ""
    cached = prices.input if prices.cache_read is None else prices.cache_read
    return f"{_dollars(prices.input)}{mark}", f"{_dollars(prices.output)}{mark}", f"{_dollars(cached)}{mark}"


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if round(amount, 2) == amount else f"${amount:,.6f}".rstrip("0")


def _deployments() -> list[Deployment]:
    return list(builtin_catalog().deployments.values())


PARTS = (Part(REFERENCE / "services.md", "services", services), Part(REFERENCE / "services.md", "models", models))
