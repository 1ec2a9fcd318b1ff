"""Commands that run with the workspace read-only, so that nobody needs to be asked: the boundary decides, not what they look like.

Rules that refuse or ask, the limits of agents and skills, and doubts about who wrote a call stand above this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.policy.judge import Law, Mode, MustAsk, judge_by_rules
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolSpec

if TYPE_CHECKING:
    from dragoman.values.commands import Reach


def reach_unasked(spec: ToolSpec, intent: Intent, mode: Mode, verdict: Allow | MustAsk | Deny, law: Law) -> Reach | None:
    """How far a command reaches that runs without a question. None: what was judged stands, and what is allowed reaches the workspace."""
    if not intent.writing or not intent.command or intent.outside or intent.problem or spec.kind != "execute":
        return None
    if mode != "plan" and (mode == "auto" or law.run_sandboxed):
        return None
    law = msgspec.structs.replace(law, rules=tuple(rule for rule in law.rules if rule.decision != "allow"))
    ruled = judge_by_rules(spec, intent, frozenset(), law)
    if ruled is not None and (ruled.decision == "deny" or ruled.is_by_rule):
        return None
    if ruled is not None and ruled.decision == "allow":  # it only reads, as far as its words say
        return "read-only"
    if isinstance(verdict, Allow) or intent.writing == "wanted":
        return None
    return "read-only"
