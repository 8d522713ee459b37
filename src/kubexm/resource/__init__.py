"""What clusters are made of: where it comes from, how it is fetched and where it is kept."""
