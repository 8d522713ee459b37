"""What a run may touch: made before anything runs, released on every way out."""
