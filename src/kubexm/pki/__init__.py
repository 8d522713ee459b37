"""Certificates of a cluster: what there are, how they are made, and what is wrong with one."""
