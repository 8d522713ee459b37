"""What people declare of their hosts and clusters."""
