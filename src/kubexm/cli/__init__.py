"""The front door for people; it translates into use cases and back, and does nothing else."""
