"""What a cluster file may say, as frozen data: one file for each key of its `spec`."""
