"""Rules for what may run: `ApprovalOptions(rules=[allow("pytest *"), deny("git push")])`."""

from dragoman.policy.rules import Rule, RuleProblem, allow, ask, deny, parse_rule, render_rule

__all__ = ["Rule", "RuleProblem", "allow", "ask", "deny", "parse_rule", "render_rule"]
