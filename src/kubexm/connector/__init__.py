"""The channel to one host."""
