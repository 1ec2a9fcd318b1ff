"""The library: agents, their sessions and runs."""

TEXTS = {
    "loop.placeholder": "此命令返回内容已过时",
}
