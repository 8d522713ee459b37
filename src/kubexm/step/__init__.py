"""The steps: `registry` knows where each kind is, and loads it when it is asked for."""
