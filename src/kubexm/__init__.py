"""kubexm: declared intent becomes one execution graph, run on your hosts."""

__version__ = "0.2.0.dev0"
