"""Hosts reached by SSH: one connection each, with long-lived shells on it."""
