"""kubexm: declared intent becomes one execution graph, run on your hosts."""

__version__ = "0.1.0"
