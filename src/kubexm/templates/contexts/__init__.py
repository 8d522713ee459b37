"""What the templates are filled in with, by folder: one frozen struct each."""
