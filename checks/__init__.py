"""Checks against what others publish: the official SDKs' types, and tables of prices and limits.

They need the package registry, so they are commands (`make wire-check`, `make catalog-check`) and not tests.
"""
