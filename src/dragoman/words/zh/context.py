"""使用本库的程序给出的过时结果。"""

TEXTS = {
    "context.clock_behind": "有 {count:,} 个结果的时间晚于现在（第一个在第 {place} 条消息）：时钟被调回，或 now_ms 过小；"
    "它们保持原样，请校正时间",
    "context.foreign_result": "第 {place} 条消息里的 {found} 是其他 API 的写法；请把每个结果写成单独的消息："
    "{{'role': 'tool', 'content': '…', 'timestamp': …}}",
    "context.log_simplified": "在 {messages:,} 条消息的副本中替换了 {count:,} 个已过时的命令结果",
    "context.not_a_result": "第 {place} 个结果是 {kind}；请给出带 tool、timestamp_ms 和 content 的映射或对象，"
    "或带 role、timestamp 和 content 的消息",
    "context.not_a_message": "第 {place} 条消息是 {given}；请给出带 role、content 的字典，"
    "工具消息还要有毫秒级的 timestamp（Dragoman 自己的会话请用 agent.prune() 精简）",
    "context.not_messages": "messages 是 {given}；请给出字典的列表，每个带 role、content，工具消息还要有毫秒级的 timestamp",
    "context.time_in_seconds": "第 {place} 条消息的时间戳是 {timestamp:g}，而现在是 {now:g}：其中一个像是以秒计的；"
    "请都用 1970 年以来的毫秒数",
    "context.time_in_words": "第 {place} 条消息的时间戳是文本 {timestamp}；请用数字，即 1970 年以来的毫秒数",
    "context.time_unusable": "now_ms 是 {now}；请给出 1970 年以来的毫秒数，或者不传",
}
