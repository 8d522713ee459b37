"""What a user can ask for, independent of how they ask: one use case, one typed parameter object."""
