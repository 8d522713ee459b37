"""What a shell does on a host for several connectors; data comes as arguments and as input."""

from __future__ import annotations

# Data on standard input becomes the file $1; empty $2, $3, $4 leave mode, owner, group alone.
WRITE = """
set -e
dir=$(dirname -- "$1")
tmp=$dir/.$(basename -- "$1").kubexm
rm -f -- "$tmp"
trap 'rm -f -- "$tmp"' EXIT
(umask 077 && set -C && cat >"$tmp")
if [ -f "$1" ] && [ ! -L "$1" ]; then
  chown --reference="$1" -- "$tmp"
  chmod --reference="$1" -- "$tmp"
else
  chmod 0644 -- "$tmp"
fi
[ -z "$3" ] || chown -- "$3" "$tmp"
[ -z "$4" ] || chgrp -- "$4" "$tmp"
[ -z "$2" ] || chmod -- "$2" "$tmp"
sync -- "$tmp"
mv -fT -- "$tmp" "$1"
trap - EXIT
"""
