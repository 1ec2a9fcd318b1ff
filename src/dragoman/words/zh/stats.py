"""会话的数字，以及故障报告的内容。"""

TEXTS = {
    "stats.nothing": "还没有请求过模型",
    "stats.head": "会话 {id}：{prompts:,} 个提示，开始于 {begun}，从第一个到最后一个条目共 {time}",
    "stats.of_model": "{model}：{requests:,} 次请求，{cost}",
    "stats.tokens": "新输入 {fresh} · 读缓存 {read} · 写缓存 {written} · 输出 {output}",
    "stats.columns": "{count:,} 列",
    "stats.all": "合计",
    "stats.at_least": "≥ 和 ?：服务没有告知全部用量，或价格未知",
    "stats.tool": "工具",
    "stats.calls": "调用",
    "stats.failed": "失败",
    "stats.time": "时间",
    "stats.answering": "从请求到回答：{time}",
    "stats.pruned": "移除了 {count:,} 个结果，当时 {tokens:,} 个 token",
    "stats.summaries": "{count:,} 次压缩了较早的消息",
    "stats.files": "工具更改了 {count:,} 个文件",
    "stats.seconds": "{seconds} 秒",
    "stats.minutes": "{minutes} 分钟",
    "stats.hours": "{hours} 小时",
    "stats.entries": "{count:,} 个条目",
    "stats.bug_head": "请把以下内容复制到您的报告中，并写明您做了什么、期望什么、实际发生了什么。"
    "什么都没有发送；其中不含对话、您的文件和密钥。",
    "stats.bug_foot": "dragoman doctor 会说明更多；如果对话能显示故障，/export 可把它写入文件。",
}
