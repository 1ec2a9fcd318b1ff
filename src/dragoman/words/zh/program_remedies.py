"""Sentences of the library whose remedy is another one in the program."""

TEXTS = {
    "sessions.not_found": "没有会话 {session}；`dragoman sessions list` 显示所有会话",
    "sessions.not_a_session": "{name} 不是会话；`dragoman sessions list` 显示所有会话",
    "sessions.no_number": "没有会话 {session}：会话有 ID 而没有编号；`dragoman sessions list` 显示它们",
    "sessions.not_a_choice": "{session} 不是会话；请写 `latest`，或 ID 的至少四个字符（`dragoman sessions list` 显示它们）",
    "sessions.not_an_id": "{name} 不是会话 ID；ID 形如 20261115-120102-1a2b3c4d（`dragoman sessions list` 显示它们）",
    "loop.no_more_summaries": "{reason}；连续 {count} 次总结都不可用，不再请求总结，改为省略旧结果；用 /compress 仍可请求一次",
    "loop.results_wait": "{results:,} 个已过时的结果（{tokens:,} 个 token，占请求的 {percent}）将{when}不再给模型看"
    "（dragoman context 可查看；dragoman context prune 可立即移除，在对话中则输入 /context prune）",
    "loop.model_is_code": "此会话使用的 {model} 是要导入的 Python 代码；会话文件不足以让人信任它：请用 -m 自己指定模型",
    "sessions.none_here": "此文件夹还没有可继续的会话；请开始一个新的（`dragoman sessions list` 显示所有会话）",
    "sessions.undo_refused_force": "没有撤销任何内容：{conflicts}{more}（/undo --force 仍然撤销；被覆盖的内容随会话保留）",
    "sessions.redo_refused_force": "没有重做任何内容：{conflicts}{more}（/redo --force 仍然重做；被覆盖的内容随会话保留）",
    "sessions.in_use": "会话 {session} 正被 {who} 使用；请先结束它，用 `dragoman sessions show {session}` 查看，"
    "或用 `dragoman sessions fork {session}` 在副本中继续",
    "sessions.not_writable": "无法写入 {path}（{reason}）；`dragoman sessions show` 可读取它，`dragoman sessions fork` 可复制它",
    "sessions.replaced": "{path} 在打开时被删除或替换；`dragoman sessions list` 显示所有会话",
    "sessions.belongs_to_other": "{path} 属于另一个用户（ID {owner}），因此只读；`dragoman sessions fork` 可复制它",
    "sessions.id_taken": "会话 {session} 已存在；`dragoman sessions list` 显示所有会话",
    "local.no_weights": "{model} 的权重不在本机；请运行 dragoman models pull {model}，或指定文件，如 local//path/to/model.gguf",
    "http.proxy_kind_socks": "；要使用 SOCKS，请在您的 Dragoman 克隆中运行 pip install '.[httpx]'，"
    '并在配置的 [http] 下设置 client = "httpx"',
    "http.httpx_missing": "[http] client = \"httpx\" 还需要一个软件包：请在您的 Dragoman 克隆中运行 pip install '.[httpx]'",
    "providers.no_key": "没有 {title} 的密钥；请设置 {names}，或运行 dragoman auth add {name} 保存一个",
    "providers.keys_damaged": "{path} 已损坏，无法使用保存的密钥；请删除它，再用 dragoman auth add 重新保存密钥",
    "providers.keyring_closed": "{service} 的密钥在系统的密钥环中，而密钥环无法使用（{reason}）；请用 dragoman auth add {service} 重新保存",
    "providers.keyring_lost": "{service} 的密钥已不在系统的密钥环中；请用 dragoman auth add {service} 重新保存",
    "loop.calls_wait": "{calls} 须先由开始此会话的程序作出决定；`dragoman sessions fork` 可复制到之前的条目，`/clear` 重新开始",
    "policy.auto_without_sandbox": "auto 方式不经询问即运行命令，且只在沙箱中；这里没有沙箱（dragoman doctor 会说明原因）："
    "请用 --approval auto-edit，并用 --allow 指定更多命令（docs/configure/rules.md）；"
    "若容器或虚拟机就是边界：--sandbox external（docs/operate/ci.md）",
    "policy.sandbox_off_for_now": "本次会话已关闭；/sandbox on 重新打开",
    "loop.budget_exceeded": "已停止：一次运行的预算 {name}={limit} 已用完（已花费 {spent}）；说 `继续` 可用新的预算继续，"
    "或在 config.toml 中提高 budget.{name}",
    "loop.budget_too_small": "已停止：一次运行的预算 {name}={limit} 已花费 {spent}，而接下来至少需要 {more}；说 `继续` 可用新的预算继续，"
    "或在 config.toml 中提高 budget.{name}",
    "loop.budget_without_price": "{model} 的价格未知，因此无法遵守 budget.usd；请在 config.toml 的对应位置设置价格"
    "（[deployments.NAME.models.MODEL] prices），或改设 budget.tokens",
    "loop.too_long_at_least": "对话约有 {tokens:,} 个 token；{model} 最多接受 {window:,} 个，而无论省略什么至少还剩 {least:,} 个。"
    "没有发送或更改任何内容。请换用上下文窗口更大的模型，让它总结较早的消息（dragoman context compress {session}），或开始新的会话",
    "tools.listens": "{id} 在沙箱内监听端口 {port}。/sandbox port {port} 让您的浏览器能访问它。",
    "tools.outside_remedy": "请用户用 --include 目录 启动",
    "mcp_auth.sign_in_needed": "尚未登录 {name}，或登录已失效；请用以下命令登录：dragoman mcp login {name}",
}
