"""Areas of a cluster: they choose tasks by what is declared, and link them."""
