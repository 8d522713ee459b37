"""Automation without Python: a pipeline file, its validation, and its way into a graph."""
