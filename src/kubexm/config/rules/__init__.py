"""Rules between the fields of a cluster file: one function each, with a name and a remedy."""
