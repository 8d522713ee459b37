#!/bin/sh
# The floor of the protocol: the OpenSSH client, tuned, one process for each command.
# rawopenssh.sh WORK BED COUNT
work=$1 bed=$2 count=$3
checks=$(dirname "$0")/sshwork/checks.sh
sockets=$(mktemp -d)
trap 'rm -rf "$sockets"' EXIT

say() {
  address=$1
  shift
  ssh -F none -i "$bed/../keys/plain" -o "UserKnownHostsFile=$bed/known_hosts" -o BatchMode=yes \
    -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o PreferredAuthentications=publickey \
    -o KexAlgorithms=curve25519-sha256 -o Ciphers=aes128-gcm@openssh.com \
    -o "ControlPath=$sockets/$address" "$@" || exit 1
}

visit() {
  case $work in
    w1) say "$1" "root@$1" /bin/true ;;
    w2)
      say "$1" -o ControlMaster=yes -fN "root@$1"
      for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        say "$1" "root@$1" /bin/true
      done
      say "$1" -q -O exit "root@$1" 2>/dev/null
      ;;
    w3) say "$1" "root@$1" "cat >/srv/bench/$2/payload" <"$bed/small.bin" ;;
    w3b) say "$1" "root@$1" "cat >/srv/bench/$2/payload" <"$bed/large.bin" ;;
    w5) say "$1" "root@$1" "base=/srv/bench/$2; . /dev/stdin" <"$checks" >/dev/null ;;
  esac
}

number=0
pids=
while [ "$number" -lt "$count" ] && read -r address; do
  number=$((number + 1))
  visit "$address" "$(printf 'h%03d' "$number")" </dev/null &
  pids="$pids $!"
done <"$bed/addresses"
for pid in $pids; do
  wait "$pid" || exit 1
done
