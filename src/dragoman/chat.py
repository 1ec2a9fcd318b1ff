"""A conversation without the loop, for whoever carries out the calls of the model themselves, and the message it may begin with."""

from dragoman.loop.chat import Chat, OwnTool
from dragoman.loop.chat_turn import ChatAnswer, ChatTurn
from dragoman.loop.initial_history import initial_history, setup_text

__all__ = ["Chat", "ChatAnswer", "ChatTurn", "OwnTool", "initial_history", "setup_text"]
