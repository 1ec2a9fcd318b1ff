"""What is wrong with a trajectory by the rules of ATIF v1.8: for tests where no validator of others is installed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

_TRAJECTORY = {
    "schema_version": str,
    "session_id": str,
    "trajectory_id": str,
    "agent": dict,
    "steps": list,
    "notes": str,
    "final_metrics": dict,
    "continued_trajectory_ref": str,
    "extra": dict,
    "subagent_trajectories": list,
}
_AGENT = {"name": str, "version": str, "model_name": str, "tool_definitions": list, "extra": dict}
_STEP = {
    "step_id": int,
    "timestamp": str,
    "source": str,
    "model_name": str,
    "reasoning_effort": (str, float),
    "message": str,
    "reasoning_content": str,
    "tool_calls": list,
    "observation": dict,
    "metrics": dict,
    "extra": dict,
    "llm_call_count": int,
    "is_copied_context": bool,
}
_OF_AGENTS = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
_CALL = {"tool_call_id": str, "function_name": str, "arguments": dict, "extra": dict}
_RESULT = {"source_call_id": str, "content": str, "subagent_trajectory_ref": list, "extra": dict}
_METRICS = {"prompt_tokens": int, "completion_tokens": int, "cached_tokens": int, "cost_usd": float, "extra": dict}
_TOTALS = {
    "total_prompt_tokens": int,
    "total_completion_tokens": int,
    "total_cached_tokens": int,
    "total_cost_usd": (float, int),
    "total_steps": int,
    "extra": dict,
}


def faults_in(told: dict[str, Any]) -> list[str]:
    """One line for each; none where it is valid."""
    faults = _wrong("trajectory", told, _TRAJECTORY, ("schema_version", "agent", "steps"))
    faults += _wrong("agent", told["agent"], _AGENT, ("name", "version"))
    faults += _wrong("final_metrics", told.get("final_metrics", {}), _TOTALS, ())
    if told["schema_version"] != "ATIF-v1.8" or not told["steps"]:
        faults.append("another version, or no step")
    for number, step in enumerate(told["steps"], 1):
        faults += _faults_in_step(number, step)
    inner = told.get("subagent_trajectories", [])
    ids = [each.get("trajectory_id") for each in inner]
    if None in ids or len(set(ids)) < len(ids):
        faults.append(f"ids of embedded trajectories: {ids}")
    refs = [
        ref["trajectory_id"] for step in told["steps"] for result in _results(step) for ref in result.get("subagent_trajectory_ref", ())
    ]
    faults += [f"no trajectory {ref}" for ref in refs if ref not in ids]
    return faults + [fault for each in inner for fault in faults_in(each)]


def _faults_in_step(number: int, step: dict[str, Any]) -> list[str]:
    name = f"step {number}"
    faults = _wrong(name, step, _STEP, ("step_id", "source", "message"))
    if step["step_id"] != number or step["source"] not in ("system", "user", "agent"):
        faults.append(f"{name}: numbered {step['step_id']}, by {step['source']}")
    if step["source"] != "agent":
        faults += [f"{name}: {key} of {step['source']}" for key in _OF_AGENTS if key in step]
    if "timestamp" in step:
        datetime.fromisoformat(step["timestamp"])
    for call in step.get("tool_calls", ()):
        faults += _wrong(name, call, _CALL, ("tool_call_id", "function_name", "arguments"))
    known = {call["tool_call_id"] for call in step.get("tool_calls", ())}
    for result in _results(step):
        faults += _wrong(name, result, _RESULT, ())
        if result.get("source_call_id", next(iter(known), "")) not in known:
            faults.append(f"{name}: a result of {result['source_call_id']}, which was not called there")
    return faults + _wrong(name, step.get("metrics", {}), _METRICS, ())


def _results(step: dict[str, Any]) -> list[dict[str, Any]]:
    return step.get("observation", {}).get("results", [])


def _wrong(name: str, fields: dict[str, Any], known: dict[str, Any], needed: tuple[str, ...]) -> list[str]:
    faults = [f"{name}: no {key}" for key in needed if key not in fields]
    return faults + [f"{name}: {key}={value!r}" for key, value in fields.items() if not isinstance(value, known.get(key, ()))]
