"""ANNEX. Models on this machine: their weights, the engine, and the provider that asks it."""
