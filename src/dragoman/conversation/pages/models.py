"""`dragoman models`: lists deployments, their models and which keys are set; pulls and removes weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.app.choice import choose_model, running_servers
from dragoman.app.keys import key_source, stored_keys
from dragoman.app.options import Options
from dragoman.app.setup import Choice, Setup, catalog_of, set_up
from dragoman.app.surface import surface
from dragoman.base import jsontext
from dragoman.base.text import did_you_mean, one_line
from dragoman.conversation.actions import Action, Output, refuse_options
from dragoman.providers.catalog import Catalog, key_variable
from dragoman.values.errors import InputError, Unauthorized
from dragoman.values.profile import Deployment, Profile
from dragoman.values.usage import Prices
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.probe import RunningServer

NAME_COLUMNS = 44
"""Of a model's name; fewer in a narrow terminal."""
_BEHIND_NAME_COLUMNS = 41
"""What stands beside a name: two sizes and two prices."""
_ANY_COLUMNS = 1_000


def run_models(options: Options) -> Output:
    """Run the action that the words name, and return what is printed."""
    return check_words(options).run(options)


def check_words(options: Options) -> Action[Options]:
    """The action that the words name. Raises InputError where one is missing, or it does not take an option."""
    name = options.words[0] if options.words and options.words[0] in ACTIONS else "list"
    action = ACTIONS[name]
    if action.operand:
        _check_operand(name, options.words[1:])
    refuse_options(options, action, "models" if name == "list" else f"models {name}")
    return action


def _check_operand(name: str, operands: tuple[str, ...]) -> None:
    from dragoman.local.weights.models import MODELS

    if not operands:
        raise InputError(say("weights_needs", action=name, known=", ".join(MODELS)))
    if len(operands) > 1:
        raise InputError(say("too_many_words", command=f"models {name}", word=one_line(operands[1], 60)))


def _pull(options: Options) -> str:
    from dragoman.conversation.pages.model_files import pull_weights

    return pull_weights(options, options.words[1])


def _remove(options: Options) -> str:
    from dragoman.conversation.pages.model_files import remove_weights

    return remove_weights(options, options.words[1])


def _list(options: Options) -> str:
    from dragoman.conversation.pages.model_files import matching_weights, weights_json, weights_lines

    setup = set_up(options)
    catalog = catalog_of(setup)
    words = options.words[1:] if options.words[:1] == ("list",) else options.words
    weights = matching_weights(" ".join(words))
    servers = running_servers(setup, catalog)
    chosen = _chosen_model(setup, catalog, servers)
    at = {server.deployment: server for server in servers}
    found = _matching_deployments(catalog, " ".join(words), [model.name for model in weights])
    found.sort(key=lambda deployment: not can_be_used(deployment, setup, at.get(deployment.name)))
    if options.output_format == "json":
        deployments = [_deployment_json(deployment, setup, at.get(deployment.name)) for deployment in found]
        return (
            jsontext.dumps(
                {
                    "chosen": chosen and {"model": chosen.model, "because": chosen.reason},
                    "deployments": deployments,
                    "weights": weights_json(weights, setup),
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


ACTIONS: dict[str, Action[Options]] = {
    "list": Action(_list),
    "pull": Action(_pull, "NAME", ("yes", "source")),
    "remove": Action(_remove, "NAME"),
}


def _chosen_model(setup: Setup, catalog: Catalog, servers: tuple[RunningServer, ...]) -> Choice | None:
    try:
        return choose_model(setup, catalog, servers)
    except Unauthorized:
        return None


def _matching_deployments(catalog: Catalog, wanted: str, weights: list[str]) -> list[Deployment]:
    """Deployments whose name matches, with all their models; of the others, only the models that match.

    Raises InputError if nothing matches, unless weights do.
    """
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
    from dragoman.local.weights.models import MODELS

    names = [*catalog.deployments, *MODELS, *(name for deployment in catalog.deployments.values() for name in deployment.models)]
    raise InputError(say("models_none_match", name=wanted, hint=did_you_mean(wanted, names)))


# --- text -----------------------------------------------------------------------------------------------------------------------


def _lines(deployment: Deployment, setup: Setup, server: RunningServer | None) -> list[str]:
    title = f"{deployment.title} · " if deployment.title else ""
    answers = f" · {say('models_answers', where=server.where)}" if server else ""
    lines = [f"{deployment.name}  {title}{_key_words(deployment, setup)}{answers}"]
    room = max(min(NAME_COLUMNS, (surface().columns or _ANY_COLUMNS) - _BEHIND_NAME_COLUMNS), 20)
    columns = max(room, *map(len, deployment.models)) if deployment.models else room
    for name, profile in deployment.models.items():
        mark = "*" if name == deployment.default_model else " "
        sizes = f"{tokens_in_short(profile.context_window):>6} {tokens_in_short(profile.max_output_tokens):>6}"
        lines.append(f" {mark} {name:<{columns}} {sizes}  {price_words(profile)}")
    if server:
        lines += [f"   {name}" for name in server.models if name not in deployment.models]
    elif not deployment.models:
        lines.append(f"   {say('models_any', name=deployment.name)}")
    return [line.rstrip() for line in lines]


def can_be_used(deployment: Deployment, setup: Setup, server: RunningServer | None) -> bool:
    """Whether a key is set or stored, or a server answers: those are listed first."""
    has_command = bool(deployment.key_command) and deployment.auth != "vertex"  # vertex always has one, whether it answers or not
    return server is not None or has_command or key_source(deployment, setup) is not None


def _key_words(deployment: Deployment, setup: Setup) -> str:
    if deployment.auth == "none" or not (deployment.key_env or deployment.key_command or deployment.auth == "vertex"):
        return say("models_no_key_needed")
    if (source := key_source(deployment, setup)) is not None:
        return say("models_key_set", source=source.words)
    if deployment.auth == "vertex":
        return say("models_google")
    if deployment.key_command:
        return say("models_key_command")
    either = " / ".join(deployment.key_env)
    if deployment.key_optional:
        return say("models_key_optional", names=either)
    return say("models_key_missing", service=deployment.name, names=either)


def tokens_in_short(tokens: int) -> str:
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.1f}".removesuffix(".0") + "M"
    return f"{tokens / 1_000:.0f}k" if tokens >= 1_000 else str(tokens)


def price_words(profile: Profile) -> str:
    prices = profile.prices
    words = [say("models_price", input=_dollars(prices.input), output=_dollars(prices.output))] if prices else []
    if profile.tools == "text":
        words.append(say("models_text_tools"))
    return " ".join(words)


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if round(amount, 2) == amount else f"${amount:g}"


# --- JSON -----------------------------------------------------------------------------------------------------------------------


def _deployment_json(deployment: Deployment, setup: Setup, server: RunningServer | None) -> dict[str, Any]:
    return {
        "name": deployment.name,
        "title": deployment.title,
        "protocol": deployment.protocol,
        "local": deployment.local,
        "key": {
            "variables": [*deployment.key_env, *deployment.token_env],
            "set": key_variable(deployment, setup.env) or None,
            "stored": stored_keys(setup).services.get(deployment.name),
        },
        "answers": server and {"at": server.where, "models": list(server.models)},
        "default_model": deployment.default_model or None,
        "models": [_model_json(name, profile) for name, profile in deployment.models.items()],
    }


def _model_json(name: str, profile: Profile) -> dict[str, Any]:
    return {
        "name": name,
        "context_window": profile.context_window,
        "max_output_tokens": profile.max_output_tokens,
        "tools": profile.tools,
        "prices": _prices_json(profile.prices),
    }


def _prices_json(prices: Prices | None) -> dict[str, Any] | None:
    if prices is None:
        return None
    return {"input": prices.input, "output": prices.output, "cache_read": prices.cache_read, "taken": prices.taken}
