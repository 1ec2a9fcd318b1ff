"""WHAT A LOCAL MODEL IS MADE OF. Weights: which there are, where they lie, and how they get there. Nothing here runs a model."""

from __future__ import annotations

from dragoman.local.weights.faults import DiskFull, NotPulled
from dragoman.local.weights.models import MODELS, Model, Part, named
from dragoman.local.weights.places import find, remove, weights_folder
from dragoman.local.weights.progress import Progress
from dragoman.local.weights.pull import pull

__all__ = ["MODELS", "DiskFull", "Model", "NotPulled", "Part", "Progress", "find", "named", "pull", "remove", "weights_folder"]
