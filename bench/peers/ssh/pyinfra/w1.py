"""One command."""

from pyinfra.operations import server

server.shell(commands=["/bin/true"])
