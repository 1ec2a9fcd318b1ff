"""A conversation without the loop, for whoever carries out the calls of the model themselves, and the message it may begin with."""

from dragoman.loop.chat import Chat as Chat
from dragoman.loop.chat import OwnTool as OwnTool
from dragoman.loop.chat_turn import ChatAnswer as ChatAnswer
from dragoman.loop.chat_turn import ChatTurn as ChatTurn
from dragoman.loop.initial_history import initial_history as initial_history
from dragoman.loop.initial_history import setup_text as setup_text
