"""How much may be written to a terminal before it has shown what it was sent. No input or output here, and no clock.

A slow line (a serial console, a modem, a phone) takes everything at once and shows it seconds later: a key that was answered long ago
seems to do nothing. So behind what is written the terminal is asked for a sign of life (`CSI 5 n`), and no more than `window` bytes are
under way until it has answered. The window doubles while answers are quick and shrinks when they are slow: on a usual terminal it is
soon without bound. A terminal that answers nothing is not waited for.
"""

from __future__ import annotations

QUICK_S, SLOW_S = 0.15, 0.3
"""An answer is quick or slow if it took this much longer than the quickest: what a long way takes is not for lack of room."""
MUTE_S = 0.3
"""A terminal that has never answered is waited for this long."""
LOST_S = 10.0
"""And any, this long."""
_LEAST, _FIRST, _MOST = 192, 1_024, 32_768
_ASK_AFTER = 256
_LONG_S = 0.8


class Pace:
    """Told what is written and when the terminal answers; says whether more may be written."""

    def __init__(self) -> None:
        self._window = _FIRST
        self._since = 0
        """Bytes since the terminal was last asked."""
        self._asked_s: float | None = None
        self._under_way = self._asked_for = 0
        """Bytes that it may not have shown yet, and how many of them stand before where it was asked."""
        self._quickest_s = _LONG_S
        self._has_answered = False
        self._is_mute = False

    @property
    def is_slow(self) -> bool:
        """Whether lines that are to be written have to wait for each other."""
        return self._has_answered and self._window < _FIRST

    @property
    def is_asked(self) -> bool:
        return self._asked_s is not None

    def room(self, now_s: float) -> int | None:
        """How many bytes may be written now; None: any number."""
        if self._is_mute or self._window >= _MOST:
            return None
        if self._asked_s is not None:
            waited_s = now_s - self._asked_s
            if (waited_s > MUTE_S and not self._has_answered) or waited_s > LOST_S:
                self._is_mute, self._asked_s, self._under_way = not self._has_answered, None, 0
                return None if self._is_mute else self._window
        return max(self._window - self._under_way, 0)

    def write(self, size: int, now_s: float) -> bool:
        """So many bytes are written. Returns whether to ask behind them."""
        self._since += size
        self._under_way += size
        if self._asked_s is not None or (self._since < _ASK_AFTER and not self.is_slow):
            return False
        self._asked_s, self._asked_for, self._since = now_s, self._under_way, 0
        return True

    def answer(self, now_s: float) -> bool:
        """The terminal has shown everything up to where it was asked. Returns whether to ask again, for what was written since."""
        waited_s = now_s - self._asked_s if self._asked_s is not None else 1.0
        self._quickest_s = min(self._quickest_s, waited_s)
        self._has_answered, self._is_mute, self._asked_s = True, False, None
        self._under_way = self._since
        if waited_s < self._quickest_s + QUICK_S and waited_s < _LONG_S:
            self._window = min(self._window * 2, _MOST)
        elif waited_s > self._quickest_s + SLOW_S or (waited_s > _LONG_S and self._window > _FIRST):
            self._window = max(min(self._window // 2, int(self._asked_for / waited_s * SLOW_S)), _LEAST)
        if not self._since or self._window >= _MOST:
            return False
        self._asked_s, self._asked_for, self._since = now_s, self._under_way, 0
        return True
