"""Components: one file each, as functions that return a fragment of graph."""
