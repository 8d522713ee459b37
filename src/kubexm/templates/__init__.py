"""Files we write to hosts, and how they are filled in."""
