"""The library: models that run on this machine, and their weights."""

TEXTS = {
    # --- the engine
    "local.engine_not_installed": "the engine for local models is not installed; this adds it: {command} "
    "(there is none for musl, as in Alpine Linux)",
    "local.engine_not_loaded": "the engine for local models cannot be loaded ({reason}); reinstall it with pip install "
    "--force-reinstall '.[local]' in your clone of Dragoman",
    "local.processor": "the local engine needs a processor with {missing}, which this one lacks; use a server that runs elsewhere "
    "(ollama/, llamacpp/), or a hosted model",
    "local.engine_silent": "the engine does not answer: {reason}",
    "local.engine_failed": "the engine failed: {reason}",
    "local.engine_no_answer": "the engine gave no answer; try again",
    "local.engine_no_count": "the engine did not count the tokens: {answer}",
    "local.engine_only_chat": "the local engine can only answer prompts and count tokens",
    "local.model_not_loaded": "the model at {path} could not be loaded: {reason}",
    "local.threads": "{variable} must be a whole number from 1, but is {value!r}",
    # --- files of weights
    "local.weights_unreadable": "the weights at {path} cannot be read: {reason}",
    "local.not_gguf": "{path} is not a GGUF file; name one that is, as local//path/to/model.gguf",
    "local.no_weights": "the weights of {model} are not on this machine; download them with dragoman.local.weights.pull, or name a file, "
    "as local//path/to/model.gguf",
    "local.unknown_weights": "no weights are known for {name!r}{hint}; choose one of {known}",
    "local.did_you_mean": " (did you mean {name}?)",
    "local.file_unusable": "{path} cannot be used as a model: {reason}",
    "local.file_not_gguf": "{path} is not a GGUF file; models must be in that format (it begins with the letters GGUF)",
    "local.being_pulled": "{model} is being downloaded by another process; end that one first",
    # --- downloading weights
    "local.disk_full": "the disk is full; make room on the disk of {folder}, then download again: what has arrived so far is kept",
    "local.disk_room": "{folder} has room for {free:,} MB, and {needed:,} MB are needed; make room, then download again",
    "local.disk_fault": "{path}: {reason}",
    "local.not_writable": "{path} cannot be written: {reason}",
    "local.not_pulled": "{model} could not be downloaded. {reasons}",
    "local.not_pulled_part": "{model} could not be downloaded (parts here, and kept: {have} of {all}). {reasons}",
    "local.not_pulled_from": "{source}: {reason}",
    "local.no_source": "there is no source",
    "local.whole_damaged": "{model}: every part arrived, but the SHA-256 of the whole file is wrong; it was deleted, download it again",
    "local.part_too_long": "part {part} is longer than it should be",
    "local.part_cut": "part {part} ended after {size:,} of {all:,} bytes",
    "local.part_damaged": "part {part} is damaged, or another file (its SHA-256 is wrong)",
    "local.hub_no_file": "it has no such file",
    "local.hub_silent": "it does not answer, or stopped sending",
    "local.hub_redirects": "it redirects too often",
    "local.hub_redirect_unsafe": "it redirects to an unsafe address",
    "local.hub_status": "it answers with HTTP {status}",
    "local.hub_no_ranges": "it does not send parts of a file",
    "local.index_title": "your package index",
    "local.index_no_package": "no package has it",
    "local.index_no_installer": "neither pip nor uv was found to download packages; install one (python -m ensurepip), then try again",
    "local.index_not_started": "{command} cannot be started: {reason}",
    "local.index_unreachable": "it cannot be reached ({detail})",
    "local.index_unknown_package": "it has no package {package} ({detail})",
    "local.index_no_pip": "pip is missing from this Python; python -m ensurepip installs it",
    "local.index_installer_failed": "the installer ended with code {code} ({detail})",
    "local.index_silent": "it said nothing",
    "local.package_damaged": "the package of part {part} is damaged ({reason})",
    "local.package_without_part": "the package {package} does not contain part {part}",
}
