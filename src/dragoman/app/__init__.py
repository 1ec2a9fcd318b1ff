"""FRONT. What every front end shares: configuration, the choice of a model, first use, opening an agent, signals."""
