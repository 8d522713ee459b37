"""Names that several layers share: roles, paths, secret references, source marks."""
