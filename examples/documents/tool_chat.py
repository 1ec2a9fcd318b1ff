"""GeminiToolChat of the founding documents: calls are carried out until there is an answer. The model is the one word to change."""

from dragoman.chat import Chat


def search_files(path: str, file_pattern: str) -> str:
    """Search for files."""
    return f"Found files matching {file_pattern}"


with Chat("gemini", tools=[search_files]) as chat:
    answer = chat.send_message_sync("搜索所有 TypeScript 文件")
    while answer.calls:
        for report in chat.run_calls_sync():
            print(f"[调用工具: {report.call.name}]", report.result.text)
        answer = chat.send_message_sync()
    print(answer.text)
