"""Twenty operations: four directories, six templates, five files, three lines, two services."""

from pyinfra import host
from pyinfra.operations import files, systemd

base = f"/srv/bench/{host.name}"
for n in range(1, 5):
    files.directory(name=f"d{n}", path=f"{base}/d{n}", mode="755")
for n in range(1, 7):
    files.template(
        name=f"t{n}",
        src="conf.j2",
        dest=f"{base}/d1/t{n}",
        mode="644",
        host_name=host.name,
        number=n,
    )
for n in range(1, 6):
    files.put(name=f"f{n}", src=f"text{n}", dest=f"{base}/d2/f{n}", mode="644")
for n in range(1, 4):
    files.line(
        name=f"l{n}",
        path=f"{base}/d3/settings",
        line=f"^setting{n} =.*$",
        replace=f"setting{n} = {n}",
    )
for unit in ("bench-one", "bench-two"):
    systemd.service(name=unit, service=unit, running=True, enabled=True)
