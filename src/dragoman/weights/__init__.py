"""WHAT A LOCAL MODEL IS MADE OF. Weights: which there are, where they lie, and how they get there. Nothing here runs a model."""

from __future__ import annotations

from dragoman.weights.faults import DiskFull, NotPulled
from dragoman.weights.models import MODELS, Model, Part, named
from dragoman.weights.places import find, remove, weights_folder
from dragoman.weights.progress import Progress
from dragoman.weights.pull import pull

__all__ = ["MODELS", "DiskFull", "Model", "NotPulled", "Part", "Progress", "find", "named", "pull", "remove", "weights_folder"]
