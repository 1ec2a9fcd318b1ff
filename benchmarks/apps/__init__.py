"""Three apps written with pydantic-ai: twins of those in `examples/apps/`, with the same features.

`python -m benchmarks.twins` runs them.
"""
