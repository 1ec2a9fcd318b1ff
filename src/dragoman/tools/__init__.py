"""CALLS → RESULTS. The registry, the scheduler, and the tools themselves: one file per family, prose descriptions beside."""
