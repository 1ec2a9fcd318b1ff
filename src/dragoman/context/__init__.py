"""WHAT THE MODEL SEES. No I/O and no clock of its own."""
