"""ABOVE THE ROOMS. What the user configured: configuration files, trust, the choice of a model, opening an agent, signals."""
