"""What a user can ask for, however they ask: use cases with a typed parameter object each."""
