"""The library: messages given by a caller."""

TEXTS = {
    "values.or": " 或 ",
    "values.provider_error": "{where}{message}{status}{request}",
    "values.no_counting": "{name} 不统计 token",
    "values.no_embeddings": "{name} 不提供嵌入",
    "values.wrong_role": "role 必须是 user 或 assistant，但消息 {position} 中是 {role!r}。{instead}。",
    "values.not_content": "{given} 无法发给模型：请给出文本、部分（如 dragoman.Blob）、消息，或由它们组成的列表",
    "values.prompt_of_assistant": "提示是用户说的话，但其中一条消息的 role 是 assistant；"
    "请把先前的消息放入 History 并交给 agent（session=）",
    "values.no_schema": "{type} 没有 JSON Schema（{reason}）：请用 msgspec Struct、dataclass、TypedDict、pydantic 模型或 JSON Schema",
    "values.role_of_model": "模型自己的消息的 role 是 assistant",
    "values.role_of_system": "请把指示写在 `system` 中，它不是消息",
    "values.role_of_tool": "结果是用户消息中的 ToolResult",
    "values.role_of_user": "人说的话写 user，模型说的话写 assistant",
    "values.answer_too_long": "已停止：回答超过 {most:,} 个字符；其文本保留在会话中。如果这是您想要的，请提高 answers.max_chars",
    "values.too_many_events": "已停止：回答分成了超过 {most:,} 段；其文本保留在会话中。如果这是您想要的，请提高 answers.max_events",
}
