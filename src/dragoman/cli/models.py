"""`dragoman models`: where models are served, which, and which of them there is a key for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.app.choice import Choice, choose_model, key_of, running_servers
from dragoman.app.options import Options
from dragoman.app.setup import Setup, catalog_of, set_up
from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.base.words import say
from dragoman.providers.catalog import Catalog
from dragoman.values.errors import InputError, Unauthorized
from dragoman.values.profile import Deployment, Profile
from dragoman.values.usage import Prices

if TYPE_CHECKING:
    from dragoman.app.probe import Running

NAME_CHARS = 44


def show_models(options: Options) -> str:
    from dragoman.cli.model_files import ACTIONS, do, matching, refuse_flags, weights_lines, weights_told

    if options.words[:1] and options.words[0] in ACTIONS:
        return do(options)
    refuse_flags(options, "models")
    setup = set_up(options)
    catalog = catalog_of(setup)
    words = options.words[1:] if options.words[:1] == ("list",) else options.words
    weights = matching(" ".join(words))
    found = _matching(catalog, " ".join(words), [model.name for model in weights])
    servers = running_servers(setup, catalog)
    chosen = _chosen(setup, catalog, servers)
    at = {server.deployment: server for server in servers}
    if options.output_format == "json":
        told = [_told(deployment, setup, at.get(deployment.name)) for deployment in found]
        return (
            jsontext.dumps(
                {
                    "chosen": chosen and {"model": chosen.model, "because": chosen.reason},
                    "deployments": told,
                    "weights": weights_told(weights, setup),
                }
            )
            + "\n"
        )
    lines = [say("models_chosen", model=chosen.model, why=chosen.why) if chosen else say("models_none_chosen")]
    for deployment in found:
        lines += ["", *_lines(deployment, setup, at.get(deployment.name))]
    if weights:
        lines += ["", *weights_lines(weights, setup)]
    return "\n".join([*lines, "", say("models_legend")]) + "\n"


def _chosen(setup: Setup, catalog: Catalog, servers: tuple[Running, ...]) -> Choice | None:
    try:
        return choose_model(setup, catalog, servers)
    except Unauthorized:
        return None


def _matching(catalog: Catalog, wanted: str, weights: list[str]) -> list[Deployment]:
    """The deployments that match by name, whole; of the others, the models that match. None need, where weights do."""
    import msgspec

    wanted = wanted.lower()
    found: list[Deployment] = []
    for deployment in catalog.deployments.values():
        if not wanted or wanted in deployment.name.lower() or wanted in deployment.title.lower():
            found.append(deployment)
            continue
        models = {name: profile for name, profile in deployment.models.items() if wanted in f"{deployment.name}/{name}".lower()}
        if models:
            found.append(msgspec.structs.replace(deployment, models=models))
    if found or weights:
        return found
    from dragoman.base.text import closest
    from dragoman.local.weights.models import MODELS

    names = [*catalog.deployments, *MODELS, *(name for deployment in catalog.deployments.values() for name in deployment.models)]
    close = closest(wanted, names)
    raise InputError(say("models_none_match", name=wanted, hint=say("did_you_mean", name=close[0]) if close else ""))


# --- text -----------------------------------------------------------------------------------------------------------------------


def _lines(deployment: Deployment, setup: Setup, server: Running | None) -> list[str]:
    title = f"{deployment.title} · " if deployment.title else ""
    answers = f" · {say('models_answers', where=server.where)}" if server else ""
    lines = [f"{deployment.name}  {title}{_key(deployment, setup)}{answers}"]
    for name, profile in deployment.models.items():
        mark = "*" if name == deployment.default_model else " "
        shown = clip(name, NAME_CHARS)
        lines.append(
            f" {mark} {shown:<{NAME_CHARS}} {_size(profile.context_window):>6} {_size(profile.max_output_tokens):>6}  {_price(profile)}"
        )
    if server:
        lines += [f"   {name}" for name in server.models if name not in deployment.models]
    elif not deployment.models:
        lines.append(f"   {say('models_any', name=deployment.name)}")
    return [line.rstrip() for line in lines]


def _key(deployment: Deployment, setup: Setup) -> str:
    if deployment.auth == "none" or not (deployment.key_env or deployment.key_command or deployment.auth == "vertex"):
        return say("models_no_key_needed")
    if variable := key_of(deployment, setup.env):
        return say("models_key_set", name=variable)
    if deployment.auth == "vertex":
        return say("models_google")
    if deployment.key_command:
        return say("models_key_command")
    either = " / ".join(deployment.key_env)
    return say("models_key_optional" if deployment.key_optional else "models_key_missing", names=either)


def _size(tokens: int) -> str:
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.1f}".removesuffix(".0") + "M"
    return f"{tokens / 1_000:.0f}k" if tokens >= 1_000 else str(tokens)


def _price(profile: Profile) -> str:
    prices = profile.prices
    words = [say("models_price", input=_dollars(prices.input), output=_dollars(prices.output))] if prices else []
    if profile.tools == "text":
        words.append(say("models_text_tools"))
    return " ".join(words)


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if round(amount, 2) == amount else f"${amount:g}"


# --- JSON -----------------------------------------------------------------------------------------------------------------------


def _told(deployment: Deployment, setup: Setup, server: Running | None) -> dict[str, Any]:
    return {
        "name": deployment.name,
        "title": deployment.title,
        "protocol": deployment.protocol,
        "local": deployment.local,
        "key": {"variables": list(deployment.key_env), "set": key_of(deployment, setup.env) or None},
        "answers": server and {"at": server.where, "models": list(server.models)},
        "default_model": deployment.default_model or None,
        "models": [_told_model(name, profile) for name, profile in deployment.models.items()],
    }


def _told_model(name: str, profile: Profile) -> dict[str, Any]:
    return {
        "name": name,
        "context_window": profile.context_window,
        "max_output_tokens": profile.max_output_tokens,
        "tools": profile.tools,
        "prices": _told_prices(profile.prices),
    }


def _told_prices(prices: Prices | None) -> dict[str, Any] | None:
    if prices is None:
        return None
    return {"input": prices.input, "output": prices.output, "cache_read": prices.cache_read, "taken": prices.taken}
