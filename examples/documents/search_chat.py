"""The conversation with search of the founding documents: its sources are data. The model is the one word to change."""

from dragoman.chat import Chat

with Chat("gemini", search="grounding") as chat:
    answer = chat.send_message_sync("今天北京的天气怎么样？")
    print("AI:", answer.cited or answer.text)
    for number, source in enumerate(answer.sources, 1):
        print(f"[{number}] {source.title} ({source.uri})")
    print("AI:", chat.send_message_sync("那明天呢？").text)
    print("AI:", chat.send_message_sync("需要带伞吗？", search="off").text)
