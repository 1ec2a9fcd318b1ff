"""Rules for what may run: `ApprovalOptions(rules=[allow("pytest *"), deny("git push")])`."""

from dragoman.policy.rules import Rule as Rule
from dragoman.policy.rules import RuleProblem as RuleProblem
from dragoman.policy.rules import allow as allow
from dragoman.policy.rules import ask as ask
from dragoman.policy.rules import deny as deny
from dragoman.policy.rules import parse_rule as parse_rule
from dragoman.policy.rules import render_rule as render_rule
