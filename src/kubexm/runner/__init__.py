"""Stateless operations on a host: functions of a `Host`."""
