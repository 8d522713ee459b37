"""What hosts have answered to the question for their facts, by system."""

DEBIAN_12 = """\
clock:1700000000.250000000
arch:x86_64
/etc/os-release:PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
/etc/os-release:NAME="Debian GNU/Linux"
/etc/os-release:VERSION_ID="12"
/etc/os-release:VERSION="12 (bookworm)"
/etc/os-release:VERSION_CODENAME=bookworm
/etc/os-release:ID=debian
/etc/os-release:HOME_URL="https://www.debian.org/"
/proc/meminfo:MemTotal:        8138928 kB
/proc/meminfo:MemFree:         5266180 kB
/proc/meminfo:SwapTotal:        998396 kB
/proc/meminfo:SwapFree:         998396 kB
/proc/meminfo:HugePages_Total:       0
/proc/self/status:Name:\tgrep
/proc/self/status:Cpus_allowed:\tf
/proc/self/status:Cpus_allowed_list:\t0-3
/proc/sys/kernel/osrelease:6.1.0-28-amd64
/proc/sys/kernel/hostname:web1
/proc/sys/kernel/random/boot_id:0a2f6e5c-52a3-4d9c-9b0c-3f1f6a0b3f55
/etc/machine-id:4e7d3c9f0b1a4a55b2c6d7e8f9a0b1c2
/proc/1/comm:systemd
/sys/block/nvme0n1/size:1000215216
/sys/block/sr0/size:2097151
/sys/block/sda/size:3907029168
/sys/block/nvme0n1/queue/rotational:0
/sys/block/sr0/queue/rotational:1
/sys/block/sda/queue/rotational:1
/sys/block/nvme0n1/device/model:SAMSUNG MZVL2512HCJQ-00B00
/sys/block/sr0/device/model:QEMU DVD-ROM
/sys/block/sda/device/model:WDC WD20EFRX-68E
init:systemd
cgroup:2
tool:apt-get
tool:containerd
tool:dockerd
told:tools
route:eno1 0101A8C0
mtu:1500
@addresses
2: eno1    inet 192.168.1.20/24 brd 192.168.1.255 scope global dynamic eno1\\       valid_lft 8sec
2: eno1    inet6 2001:db8::20/64 scope global dynamic mngtmpaddr \\       valid_lft 86000sec
3: docker0    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0\\       valid_lft forever
@filesystems
Filesystem     Type     1024-blocks    Used Available Capacity Mounted on
udev           devtmpfs     4046420       0   4046420       0% /dev
tmpfs          tmpfs         813896    1012    812884       1% /run
/dev/nvme0n1p2 ext4       490617784 9876540 455745860       3% /
/dev/nvme0n1p1 vfat          523248    5972    517276       2% /boot/efi
/dev/sda1      xfs       1952559676 1000000 951559676       1% /srv/my data
overlay        overlay    490617784 9876540 455745860       3% /var/lib/docker/overlay2/1/merged
@
uuid:4C4C4544-0042-3510-8052-B4C04F4E3132
@ports
udp   UNCONN 0      0            0.0.0.0:68        0.0.0.0:*    users:(("dhclient",pid=612,fd=7))
tcp   LISTEN 0      128          0.0.0.0:22        0.0.0.0:*    users:(("sshd",pid=701,fd=3))
tcp   LISTEN 0      128             [::]:22           [::]:*    users:(("sshd",pid=701,fd=4))
tcp   LISTEN 0      4096       127.0.0.1:10248     0.0.0.0:*
"""

ROCKY_9 = """\
clock:1700000000.500000000
arch:aarch64
/etc/os-release:NAME="Rocky Linux"
/etc/os-release:VERSION="9.4 (Blue Onyx)"
/etc/os-release:ID="rocky"
/etc/os-release:ID_LIKE="rhel centos fedora"
/etc/os-release:VERSION_ID="9.4"
/etc/os-release:PLATFORM_ID="platform:el9"
/etc/os-release:PRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"
/proc/meminfo:MemTotal:        3733420 kB
/proc/meminfo:SwapTotal:             0 kB
/proc/self/status:Cpus_allowed:\tffffffff,00000003
/proc/sys/kernel/osrelease:5.14.0-427.13.1.el9_4.aarch64
/proc/sys/kernel/hostname:rocky.example.org
/proc/sys/kernel/random/boot_id:5b9f1d61-4d2f-4d7c-8f0e-8d1b7c9a0e11
/etc/machine-id:9f1c0d2e3b4a5968778695a4b3c2d1e0
/sys/fs/selinux/enforce:1
/proc/1/comm:systemd
/sys/block/dm-0/size:35643392
/sys/block/vda/size:41943040
/sys/block/dm-0/queue/rotational:1
/sys/block/vda/queue/rotational:1
init:systemd
cgroup:2
tool:dnf
tool:yum
tool:crio
told:tools
route:enp1s0 017AA8C0
mtu:9000
@addresses
2: enp1s0    inet 192.168.122.50/24 brd 192.168.122.255 scope global noprefixroute enp1s0\\       x
@filesystems
Filesystem          Type     1024-blocks    Used Available Capacity Mounted on
devtmpfs            devtmpfs        4096       0      4096       0% /dev
/dev/vda1           xfs           983040  288768    694272      30% /boot
/dev/mapper/rl-root xfs         17756160 1843200  15912960      11% /
@
@ports
tcp   LISTEN 0      128          0.0.0.0:22        0.0.0.0:*
"""

LEAP_15_6 = """\
clock:1700000000.000000000
arch:s390x
/etc/os-release:NAME="openSUSE Leap"
/etc/os-release:VERSION="15.6"
/etc/os-release:ID="opensuse-leap"
/etc/os-release:ID_LIKE="suse opensuse"
/etc/os-release:VERSION_ID="15.6"
/etc/os-release:PRETTY_NAME="openSUSE Leap 15.6"
/proc/meminfo:MemTotal:        2035268 kB
/proc/meminfo:SwapTotal:       2097148 kB
/proc/self/status:Cpus_allowed:\t3
/proc/sys/kernel/osrelease:6.4.0-150600.23.25-default
/proc/sys/kernel/hostname:leap
/proc/1/comm:systemd
/sys/block/dasda/size:14423040
/sys/block/dasda/queue/rotational:0
init:systemd
cgroup:1
tool:zypper
told:tools
route:eth0 C0A87A01
mtu:1492
@addresses
192.168.122.77 fd00::77
@filesystems
Filesystem     Type  1024-blocks    Used Available Capacity Mounted on
/dev/dasda1    btrfs     7211520 2000000   5000000      29% /
@
@ports
/proc/net/tcp:   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0
/proc/net/tcp6:   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A
/proc/net/udp:  812: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     0
"""

UBUNTU_24_04 = """\
arch:x86_64
/etc/os-release:PRETTY_NAME="Ubuntu 24.04.1 LTS"
/etc/os-release:NAME="Ubuntu"
/etc/os-release:VERSION_ID="24.04"
/etc/os-release:ID=ubuntu
/etc/os-release:ID_LIKE=debian
/proc/meminfo:MemTotal:        4005128 kB
/proc/meminfo:SwapTotal:             0 kB
/proc/self/status:Cpus_allowed:\t1
/proc/1/comm:systemd
/sys/block/xvda/size:16777216
init:systemd
cgroup:2
tool:apt-get
tool:dnf
told:tools
route:tun0 00000000
mtu:1420
@addresses
@filesystems
Filesystem     Type  1024-blocks    Used Available Capacity Mounted on
overlay        overlay  8065444 2000000   6049060      25% /
/dev/loop0     squashfs   75776   75776         0     100% /snap/core22/1564
"""
