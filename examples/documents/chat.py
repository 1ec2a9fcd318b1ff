"""GeminiChat of the founding documents: each message is sent with all before it. The model is the one word to change."""

from dragoman.chat import Chat

with Chat("gemini") as chat:
    print("AI:", chat.send_message_sync("今天北京的天气怎么样？").text)
    print("AI:", chat.send_message_sync("那明天呢？").text)
    print("AI:", chat.send_message_sync("需要带伞吗？").text)
    chat.clear()
