"""Weights of local models: which there are, where they are stored, and how they are downloaded. Nothing here runs a model."""

from __future__ import annotations

from dragoman.local.weights.faults import DiskFull, NotPulled
from dragoman.local.weights.models import MODELS, LocalModel, Part, get_model
from dragoman.local.weights.places import find, remove, weights_folder
from dragoman.local.weights.progress import Progress
from dragoman.local.weights.pull import pull

__all__ = ["MODELS", "DiskFull", "LocalModel", "NotPulled", "Part", "Progress", "find", "get_model", "pull", "remove", "weights_folder"]
