"""Facts: 27 of them, each by a command of its own, as pyinfra has them."""

from pyinfra import host
from pyinfra.facts import deb, hardware, server, systemd

FACTS = (
    server.Hostname,
    server.Kernel,
    server.KernelVersion,
    server.Os,
    server.OsVersion,
    server.OsRelease,
    server.Arch,
    server.LinuxDistribution,
    server.LinuxName,
    server.Selinux,
    server.User,
    server.Home,
    server.Path,
    server.Date,
    server.Users,
    server.Groups,
    server.Mounts,
    server.KernelModules,
    server.Sysctl,
    server.Locales,
    server.SecurityLimits,
    hardware.Cpus,
    hardware.Memory,
    hardware.BlockDevices,
    hardware.NetworkDevices,
    deb.DebPackages,
    systemd.SystemdStatus,
)
for fact in FACTS:
    host.get_fact(fact)
