"""The library: tools described in text."""

TEXTS = {
    "text_tools.unknown_dialect": "没有叫 {name!r} 的方言{hint}",
    "text_tools.did_you_mean": "；您是指 {names} 吗？",
}
