"""Two hundred mebibytes to a file that is not there."""

from pyinfra import host
from pyinfra.operations import files

files.put(src="large.bin", dest=f"/srv/bench/{host.name}/payload")
