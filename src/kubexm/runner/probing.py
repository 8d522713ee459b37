"""What a host has to be asked beyond its facts before it becomes part of a cluster.

One script asks all of it, in one round trip. Like the one for facts it is a constant that finds
its data as words, and `told` reads what it prints. It changes nothing, but for one file: where etcd
is to keep its data, it writes for two seconds at most what etcd would, and takes that away again on
every way out.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from kubexm.common import layout
from kubexm.common.probing import (
    CLUSTER_DIRECTORIES,
    CLUSTER_FILES,
    CLUSTER_UNITS,
    HARMLESS,
    KUBEADM_MARKER,
    LEDGER,
    PROBING_SCRIPT,
    RESOLVED,
    RUNTIME_UNITS,
    SECTIONS,
    TOOLS,
    WRITE_BYTES,
)
from kubexm.connector.base import C_LOCALE
from kubexm.runner import clock, firewall
from kubexm.runner.host import Command, Host

SECONDS = 60.0
"""More than it takes on a host where nothing answers and the disk is slow."""
WRITES = 200


class Knock(msgspec.Struct, frozen=True):
    """A port of another host, to be tried from here."""

    host: str
    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.host} {self.address} {self.port}"


class Questions(msgspec.Struct, frozen=True):
    """What differs from host to host in what is asked."""

    cluster: str = ""
    """Whose ledger would lie on the host, had it been worked on before."""
    etcd: str = ""
    """Where etcd will keep its data; nothing if it will not be there."""
    endpoint: str = ""
    """An address that nobody should have, as `ADDRESS PORT`."""
    servers: tuple[str, ...] = ()
    """Those who should answer for names."""
    knocks: tuple[Knock, ...] = ()


_OPEN = f"""{PROBING_SCRIPT}exec 2>/dev/null
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin
state=$1 name=$2 etcd=$3 endpoint=$4 servers=$5
shift 5
echo "uid:$(id -u)"
ours= busy=
grep -qsF "{{\\"name\\": \\"$name\\"," "$state"/{LEDGER}/*.json && ours=ledger
if [ -e "$state/{KUBEADM_MARKER}" ]; then
  member=$(sed -n 's/.*"cluster": *"\\([^"]*\\)".*/\\1/p' "$state/{KUBEADM_MARKER}")
  busy=yes
  echo "member:$member"
  [ -n "$member" ] && ours=
  if [ -z "$name" ] || [ "$member" = "$name" ]; then ours=kubeadm; fi
fi
echo "ours:$ours"
grep -sH '^nameserver' {RESOLVED}
for tool in {" ".join(TOOLS)}; do command -v $tool >/dev/null && echo tool:$tool; done
echo told:tools
"""
_LEFT = f"""filled() {{
  for entry in "$1"/* "$1"/.[!.]*; do [ -e "$entry" ] && return; done
  return 1
}}
for path in {" ".join(CLUSTER_DIRECTORIES)} "$etcd"; do
  [ -n "$path" ] && filled "$path" && echo "file:$path"
done
for path in {" ".join(f"{directory}/*{end}" for directory, end in CLUSTER_FILES)}; do
  case $path in *{HARMLESS}*) ;; *) [ -e "$path" ] && echo "file:$path" ;; esac
done
while read -r link _; do
  case $link in *:*) echo "link:${{link%%:*}}" ;; esac
done </proc/net/dev
while read -r _ path _; do
  case $path in {layout.KUBELET_DATA}/*|/run/netns/cni-*) echo "mount:$path" ;; esac
done </proc/mounts
while read -r protocol _; do
  case $protocol in TCP|UDP|SCTP) echo "virtual:$protocol" ;; esac
done </proc/net/ip_vs
if [ -z "$ours" ]; then
  iptables-save | grep -oE '^:(KUBE-SERVICES|cali-|CILIUM_|FLANNEL-)[A-Za-z_-]*'
  nft list tables | grep -E 'kube-proxy|cilium|calico'
fi | while read -r rule; do echo "rule:${{rule#:}}"; done
"""
_LOOKS = f"""echo @units
systemctl is-active {" ".join((*CLUSTER_UNITS, *RUNTIME_UNITS))}
echo @routes
ip -o route show && {{ echo @routes6; ip -o -6 route show; printf '%s\\n' @ told:routes; }}
"""
# Who serves the root of all names, asked in two ways: a server that has to look around for that may
# take long, and tells at once what it knows if it is asked for no more. Any word of it will do.
_ASK = r"""ask() {
  timeout 5 bash -c '
    exec 3<>"/dev/udp/$0/53" || exit
    for turn in 1 2; do
      for looks in 1 0; do
        printf "kx\\$looks\0\0\1\0\0\0\0\0\0\0\0\2\0\1" >&3 || exit
      done
      read -r -t 2 -n 1 -u 3 && exit
    done
    exit 1
  ' "$1" && echo "answers:$1"
}
"""
# Somebody who says no is there, and nothing on the way has kept us from it. A firewall that turns
# us away says `No route to host`; one that drops us says nothing.
_KNOCK = """echo @
knock() {
  if said=$(exec 2>&1; timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$2" "$3"); then said=open; fi
  case $said in
    open) word=open ;; *refused*) word=closed ;;
    *'No route'*|*unreachable*) word=unroutable ;; *) word=silent ;;
  esac
  echo "knock:$1 $2 $3 $word"
  case $word in unroutable|silent) ping -n -c 1 -W 1 "$2" >/dev/null && echo "ping:$2" ;; esac
}
if command -v bash >/dev/null && command -v timeout >/dev/null; then
  set -f
  for each in "$@" ${endpoint:+"- $endpoint"}; do ( knock $each ) & done
  for each in $servers; do ( ask "$each" ) & done
  set +f
  wait
  echo told:knocks
fi
[ -n "$endpoint" ] && echo "neighbour:$(ip neigh show to "${endpoint% *}")"
"""
# Each write by a process of its own: it tells how long it took from its own beginning, and that is
# what counts, not what it took to start it. Nobody else is disturbed where a cluster runs already.
_WRITE = f"""if [ -n "$etcd" ] && [ -z "$ours$busy" ]; then
  there=$etcd
  while [ -n "$there" ] && [ ! -d "$there" ]; do there=${{there%/*}}; done
  echo "place:${{there:-/}}"
  echo @writes
  (
    read -r begun _ </proc/uptime
    file=$there/.kubexm-writes.$$.$begun count=0
    trap 'rm -f "$file"' EXIT
    trap 'exit 1' HUP INT TERM
    set -C
    exec 3>"$file"
    while [ $count -lt {WRITES} ]; do
      dd if=/dev/zero bs={WRITE_BYTES} count=1 conv=fdatasync || break
      read -r now _ </proc/uptime
      [ $((${{now%.*}} - ${{begun%.*}})) -lt 2 ] || break
      count=$((count + 1))
    done 2>&1 >&3 | grep copied
  )
fi
:
"""


def command(host: Host, questions: Questions) -> Command:
    """Ask a host all of it; `probed.probed_of` reads the answer."""
    words = (host.state_dir, questions.cluster, questions.etcd, questions.endpoint)
    servers = " ".join(questions.servers)
    knocks = map(str, questions.knocks)
    return host.script(_script(host), *words, servers, *knocks, env=C_LOCALE)


def _script(host: Host) -> str:
    looks = (*firewall.state_commands(host), *clock.state_commands(host))
    asked = (_look(name, look.argv) for name, look in zip(SECTIONS, looks, strict=True))
    return f"{_OPEN}{_LEFT}{_LOOKS}{''.join(asked)}{_ASK}{_KNOCK}{_WRITE}"


def _look(name: str, argv: Sequence[str]) -> str:
    """A command whose answer counts if it succeeds; that of the keepers tells of each of them."""
    asked = shlex.join(argv)
    if name != SECTIONS[-1]:
        asked = f"said=$(timeout 10 {asked}) && printf '%s\\n' \"$said\""
    return f"echo @{name}\n{asked}\n"
