"""Twenty commands, one after the other."""

from pyinfra.operations import server

for number in range(20):
    server.shell(name=f"c{number}", commands=["/bin/true"])
