"""库：模型上下文协议（MCP）的服务器。"""

TEXTS = {
    # --- 程序
    "mcp.no_program": "找不到 MCP 服务器的程序 {command!r}；请安装它，或写出完整路径",
    "mcp.not_started": "无法启动 MCP 服务器的程序 {command!r}：{reason}",
    "mcp.died": "MCP 服务器 {server} 已结束（退出码 {code}）",
    "mcp.died_saying": "MCP 服务器 {server} 已结束（退出码 {code}）；最后的输出：{stderr}",
    "mcp.only_garbage": "MCP 服务器 {server} 在标准输出上写了 {count} 行不是 MCP 的内容，已被终止；日志应写到标准错误",
    # --- 地址
    "mcp.unreachable": "无法连接 MCP 服务器 {server}：{reason}",
    "mcp.lost": "与 MCP 服务器 {server} 的连接已断开：{reason}",
    "mcp.refused": "{host} 上的 MCP 服务器拒绝了请求（HTTP {status}）{body}",
    "mcp.sign_in": "{host} 上的 MCP 服务器要求登录（HTTP {status}）{body}",
    "mcp.forbidden": "{host} 上的 MCP 服务器不允许此操作（HTTP {status}）{body}",
    "mcp.no_answer": "MCP 服务器 {server} 的回答还未完整就结束了",
    "mcp.stream_ended": "MCP 服务器 {server} 结束了数据流",
    "mcp.session_lost": "MCP 服务器 {server} 已不认得此会话",
    "mcp.other_host": "MCP 服务器 {server} 要求把消息发往另一台主机（{address}），已拒绝",
    # --- 它说了什么
    "mcp.closed": "与 MCP 服务器 {server} 的连接已关闭",
    "mcp.timed_out": "MCP 服务器 {server} 在 {seconds:g} 秒内没有回应（{method}）",
    "mcp.protocol_error": "MCP 服务器 {server} 返回错误：{message}（{code}）",
    "mcp.too_long": "MCP 服务器的回答超过 {most} 字节",
    "mcp.not_mcp": "{server} 的回答不是 MCP（{reason}）；请检查地址",
    "mcp.unknown_version": "MCP 服务器 {server} 使用的协议版本未知（{version}）",
    "mcp.no_version": "MCP 服务器 {server} 不支持任何已知的协议版本（{versions}）",
    "mcp.unknown_result": "MCP 服务器 {server} 返回了未知类型的结果（{kind}）",
    "mcp.asks_forever": "MCP 服务器 {server} 询问了 {count} 次，却没有给出结果",
    "mcp.unsendable": "要发给 MCP 服务器 {server} 的内容不是 JSON：{reason}",
    "mcp.not_offered": "MCP 服务器 {server} 要求了此处不提供的功能（{method}）",
}
