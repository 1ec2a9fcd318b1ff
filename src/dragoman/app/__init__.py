"""FRONT. What every front end shares: configuration, choosing a model, first use, opening an agent, signals."""
