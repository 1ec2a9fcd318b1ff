"""What comes into the prompt from elsewhere: from the user's editor, and images from the clipboard."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.tui.asking import Printer
    from dragoman.tui.clipboard import PastedImages
    from dragoman.tui.prompt import PromptInput


class FromElsewhere:
    """`run_editor` lends the terminal to the editor; `hint` shows a few words until the next key; `within_reach`: the folders that commands
    may write to."""

    def __init__(
        self,
        prompt: PromptInput,
        run_editor: Callable[[str, str], Awaitable[str | None]],
        screen: Printer,
        hint: Callable[[str], None],
        within_reach: Callable[[], Sequence[str]],
    ) -> None:
        self._prompt = prompt
        self._run_editor = run_editor
        self._screen = screen
        self._hint = hint
        self._within_reach = within_reach
        self._pasted: PastedImages | None = None

    async def edit(self) -> None:
        from dragoman.conversation.editor import EditorFailed, editor_of

        composer = self._prompt.composer
        if not editor_of(os.environ):  # on one line of the terminal nothing is gained
            return self._hint(say("conversation.no_editor"))
        try:
            edited = await self._run_editor(composer.whole_text(), "prompt.md")
        except EditorFailed as error:
            return self._screen.message(str(error), "red")
        if edited is None:
            return self._hint(say("conversation.edit_given_up"))
        composer.pastes.clear()
        composer.set(edited, fold=False)
        return self._hint("")

    async def paste_image(self) -> None:
        from dragoman.tui.clipboard import NoClipboard, PastedImages, read_image

        try:
            data = await read_image(self._within_reach())
            if not data:
                return self._hint(say("conversation.no_image"))
            if self._pasted is None:
                self._pasted = PastedImages(self._within_reach())
            path = self._pasted.keep(data)
        except NoClipboard:
            return self._hint(say("conversation.no_clipboard"))
        except OSError as error:
            return self._hint(say("run_failed", message=error.strerror or error))
        self._prompt.composer.insert(f"@{path} ")
        return self._hint("")

    def close(self) -> None:
        if self._pasted is not None:
            self._pasted.close()
