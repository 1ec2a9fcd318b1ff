"""ANNEX. Models on this machine: weights, inference engine, and the provider that calls it."""
