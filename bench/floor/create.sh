#!/bin/bash
# The floor: a cluster by plain ssh and kubeadm in the best order, and nothing beside that.
#
#     create.sh SOFTWARE SSH_CONFIG PLACE PLANES NAME=ADDRESS...
#
# The first PLANES hosts are control planes, the others workers; the kubeconfig goes to PLACE, a
# new directory. It looks at nothing twice and takes nothing back: the hosts have to be new.
set -euo pipefail
here=$(dirname "$0")
software=$1 config=$2 place=$3 count=$4
shift 4
declare -A address
names=()
for pair; do
  names+=("${pair%%=*}")
  address[${pair%%=*}]=${pair#*=}
done
first=${names[0]}
planes=("${names[@]:0:count}")
workers=("${names[@]:count}")
token=$(openssl rand -hex 3).$(openssl rand -hex 8)

# --- what is brought to hosts

file() { find "$software/files" -type f -path "*$1" | sort -V | tail -1; }
image() { echo "$software/images/$1"-*.tar; }
tag() { basename "$(image "$1")" .tar | sed "s/^$1-//"; }

kubernetes=$(tag kube-apiserver) pause=$(tag pause) coredns=$(tag coredns) haproxy=$(tag haproxy)
backends=$(for name in "${planes[@]}"; do
  printf '    server %s %s:6443\\n' "$name" "${address[$name]}"
done)

# A file of ours as a host has it; in some stands what the cluster has told.
filled() {
  sed -e "s|@NAME@|$1|g; s|@ADDRESS@|${address[$1]}|g; s|@TOKEN@|$token|g" \
    -e "s|@KUBERNETES@|$kubernetes|g; s|@PAUSE@|$pause|g; s|@HAPROXY@|$haproxy|g" \
    -e "s|@COREDNS@|$coredns|g; s|@BACKENDS@|${backends%\\n}|g" \
    -e "s|@PODS@|${3-}|g" "$2"
}

is_plane() { [[ " ${planes[*]} " == *" $1 "* ]]; }

known_names() {
  local name
  for name in "${names[@]}"; do echo "${address[$name]} $name"; done
  if is_plane "$1"; then
    for name in "${planes[@]}"; do echo "${address[$name]} api.floor.internal"; done
  else
    echo "127.0.0.1 api.floor.internal"
  fi
}

# All settings of a host in one archive.
settings() {
  local tree=$place/tree/$1 part path
  for part in every $(is_plane "$1" || echo worker); do
    for path in $(cd "$here/$part" && find . -type f); do
      mkdir -p "$tree/${path%/*}"
      filled "$1" "$here/$part/$path" >"$tree/$path"
    done
  done
  known_names "$1" >"$tree/etc/hosts.floor"
  tar -C "$tree" --owner=0 --group=0 --mode=u=rwX,go=rX -c etc
}

# --- how hosts are reached, and who waits for whom

on() {
  local host=$1
  shift
  ssh -F "$config" -o BatchMode=yes -o LogLevel=ERROR -o Ciphers=aes128-gcm@openssh.com \
    -o ControlMaster=auto -o ControlPersist=yes -o "ControlPath=$place/%n" "root@$host" "$@"
}

kubectl() {
  on "$first" /usr/local/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"
}

mark() { touch "$place/marks/$1"; }
await() { until [ -e "$place/marks/$1" ]; do sleep 0.02; done; }
together() {
  local pid
  for pid; do wait "$pid"; done
}

# --- a host before there is a cluster

# Images can only come when containerd runs; all other programs come meanwhile.
runtime() {
  settings "$1" | on "$1" 'tar -x --no-overwrite-dir -C / && cat /etc/hosts.floor >>/etc/hosts &&
    rm /etc/hosts.floor && mkdir -p /etc/cni/net.d /etc/kubernetes/manifests &&
    { modprobe -qa overlay br_netfilter || true; } && sysctl -q -p /etc/sysctl.d/90-kubernetes.conf'
  on "$1" 'cat >/usr/local/bin/runc && chmod 755 /usr/local/bin/runc' <"$(file /runc.amd64)"
  on "$1" 'tar -xz -C /usr/local bin/containerd bin/containerd-shim-runc-v2 bin/ctr &&
    systemctl daemon-reload && systemctl enable -q kubelet routes &&
    systemctl enable -q --now containerd' <"$(file '/containerd-*.tar.gz')"
}

programs() {
  local name
  for name in kubeadm kubelet $(! is_plane "$1" || echo kubectl); do
    on "$1" "cat >/usr/local/bin/$name && chmod 755 /usr/local/bin/$name" <"$(file "/$name")"
  done
  on "$1" 'mkdir -p /opt/cni/bin && tar -xz -C /opt/cni/bin' <"$(file '/cni-plugins-*.tgz')"
  on "$1" 'tar -xz -C /usr/local/bin crictl' <"$(file '/crictl-*.tar.gz')"
  if is_plane "$1"; then
    on "$1" 'tar -xz -C /usr/local/bin --strip-components=1 --wildcards "*/etcdctl" "*/etcdutl"' \
      <"$(file "/etcd-$etcd-*.tar.gz")"
  fi
}

# Images go from this disk straight into containerd, all of a host at once.
import() {
  local host=$1 namespace=$2 name pids=()
  shift 2
  for name; do
    on "$host" /usr/local/bin/ctr -n "$namespace" images import - <"$(image "$name")" >/dev/null &
    pids+=($!)
  done
  together "${pids[@]}"
}

prepared() {
  local pids=()
  on "$1" true # the connection that all of these share
  programs "$1" &
  pids+=($!)
  runtime "$1"
  # Everybody waits for the first control plane, so nothing large stands in its way.
  [ "$1" = "$first" ] || await loaded
  if is_plane "$1"; then
    # All that kubeadm looks for before it begins.
    import "$1" k8s.io pause etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy &
    pids+=($!)
  else
    import "$1" k8s.io pause kube-proxy coredns &
    pids+=($!)
    import "$1" balancer haproxy
    on "$1" systemctl enable -q --now balancer
  fi
  together "${pids[@]}"
}

# --- a host in the cluster

init() {
  cat <(filled "$first" "$here/init.yaml") "$here/every/etc/kubernetes/kubelet.yaml" |
    on "$first" 'cat >/etc/kubernetes/init.yaml && /usr/local/bin/kubeadm init \
      --skip-token-print --skip-phases addon/coredns --config /etc/kubernetes/init.yaml'
  # By this file hosts know the cluster at once. By a token alone they wait until the cluster has
  # signed for it, and ask for that every five seconds.
  kubectl -n kube-public get configmap cluster-info -o jsonpath={.data.kubeconfig} >"$place/known"
  mark begun
}

join() {
  on "$1" 'cat >/run/discovery.conf' <"$place/known"
  {
    filled "$1" "$here/join.yaml"
    ! is_plane "$1" || echo "controlPlane: {localAPIEndpoint: {advertiseAddress: ${address[$1]}}}"
  } | on "$1" 'cat >/run/join.yaml && /usr/local/bin/kubeadm join --config /run/join.yaml &&
    rm /run/join.yaml /run/discovery.conf'
  mark "joined-$1"
}

# Pods of a host can be connected as soon as the cluster has said where they are.
connected() {
  until kubectl get node "$1" -o jsonpath={.spec.podCIDR} 2>/dev/null | grep / >"$place/pods-$1"; do
    sleep 0.1
  done
  filled "$1" "$here/network.json" "$(<"$place/pods-$1")" |
    on "$1" 'cat >/etc/cni/net.d/10-floor.conflist'
  mark "connected-$1"
}

first_plane() {
  prepared "$first"
  mark loaded
  import "$first" k8s.io coredns &
  init
  kubectl config view --raw >"$place/kubeconfig"
  connected "$first"
  together $!
}

# Members of etcd come one at a time.
next_plane() {
  prepared "$1"
  import "$1" k8s.io coredns &
  await begun
  on "$first" tar -C /etc/kubernetes/pki -c ca.crt ca.key sa.pub sa.key front-proxy-ca.crt \
    front-proxy-ca.key etcd/ca.crt etcd/ca.key |
    on "$1" 'mkdir -p /etc/kubernetes/pki && tar -x -C /etc/kubernetes/pki'
  [ "$2" = "$first" ] || await "joined-$2"
  join "$1"
  connected "$1"
  together $!
}

worker() {
  prepared "$1"
  await begun
  join "$1"
  connected "$1"
}

# With fewer nodes to choose from, all its pods would go to one.
names_answered() {
  local name
  for name in "${workers[@]}"; do await "connected-$name"; done
  kubectl wait --for=condition=Ready "${workers[@]/#/node/}" --timeout=300s
  filled "$first" "$here/coredns.yaml" | kubectl apply -f -
  kubectl -n kube-system rollout status deployment/coredns --timeout=300s
}

routed() {
  local name
  {
    for name in "${names[@]}"; do
      [ "$name" = "$1" ] || echo "ip route replace $(<"$place/pods-$name") via ${address[$name]}"
    done
    echo "iptables -w -t nat -A POSTROUTING -s 10.233.64.0/18 ! -d 10.233.64.0/18 -j MASQUERADE"
  } | on "$1" 'cat >/etc/kubernetes/routes && systemctl start routes'
}

# --- the cluster

all() {
  local name before=$first pids=()
  first_plane &
  pids+=($!)
  for name in "${planes[@]:1}"; do
    next_plane "$name" "$before" &
    pids+=($!)
    before=$name
  done
  for name in "${workers[@]}"; do
    worker "$name" &
    pids+=($!)
  done
  names_answered &
  local answered=$!
  together "${pids[@]}"
  pids=()
  for name in "${names[@]}"; do
    routed "$name" &
    pids+=($!)
  done
  together "${pids[@]}"
  kubectl wait --for=condition=Ready node --all --timeout=300s
  together $answered
}

close() {
  local socket
  for socket in "${names[@]}"; do
    [ ! -S "$place/$socket" ] || on "$socket" -q -O exit 2>/dev/null || true
  done
}

mkdir -p "$place/marks"
etcd=$(file '/etcd-v*.tar.gz' | sed 's|.*/etcd-\(v[0-9.]*\)-.*|\1|')
trap close EXIT
all
