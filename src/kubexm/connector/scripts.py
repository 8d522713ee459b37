"""What a shell does on a host for several connectors; data comes as arguments and as input."""

from __future__ import annotations

# For files that come into being beside their place, under `set -e`. begin TARGET MODE OWNER GROUP:
# only we may read what is written from now on, unless it gets the usual mode anyway. place PART
# TARGET MODE OWNER GROUP: the part becomes the target; what is empty is left as it was there.
_PLACE = """
begin() {
  umask 077
  plain=
  if [ -z "$2$3$4" ] && [ ! -e "$1" ]; then umask 022; plain=1; fi
}
place() {
  if [ -f "$2" ] && [ ! -L "$2" ]; then
    chown --reference="$2" -- "$1"
    chmod --reference="$2" -- "$1"
  elif [ -z "$3" ] && [ -z "$plain" ]; then
    chmod 0644 -- "$1"
  fi
  [ -z "$4" ] || chown -- "$4" "$1"
  [ -z "$5" ] || chgrp -- "$5" "$1"
  [ -z "$3" ] || chmod -- "$3" "$1"
  sync -- "$1"
  mv -fT -- "$1" "$2"
}
"""
# Data on standard input becomes the file $1; empty $2, $3, $4 leave mode, owner, group alone.
WRITE = (
    _PLACE
    + """
set -e
path=${1%"${1##*[!/]}"}
tmp=${path%/*}/.${path##*/}.kubexm
if [ -e "$tmp" ] || [ -L "$tmp" ]; then rm -f -- "$tmp"; fi
trap 'rm -f -- "$tmp"' EXIT
begin "$1" "$2" "$3" "$4"
set -C
cat >"$tmp"
set +C
place "$tmp" "$1" "$2" "$3" "$4"
trap - EXIT
"""
)

# Prints the sha256 of standard input, of which $1 bytes are expected. OpenSSL uses what the
# processor has for it and is several times as fast as sha256sum, but takes longer to start.
_SUM = """
sum() {
  if [ "$1" -gt 524288 ] && command -v openssl >/dev/null; then
    openssl dgst -sha256 -r
  else
    sha256sum
  fi
}
"""
# How far the file $1 of $3 bytes has come, $2 being its part: two lines of size and digest, or
# `none`. A digest is reckoned only where the size says that it can matter.
ARRIVED = (
    _SUM
    + """
arrived() {
  size=$(stat -c %s -- "$1")
  if [ "$size" -lt "$2" ] || [ "$size" -gt "$3" ]; then echo none; return; fi
  echo "$size $(sum "$size" <"$1")"
}
if [ -f "$1" ] && [ ! -L "$1" ]; then arrived "$1" "$3" "$3"; else echo none; fi
if [ -f "$2" ] && [ ! -L "$2" ] && [ -O "$2" ]; then arrived "$2" 1 "$3"; else echo none; fi
"""
)
DIFFERS = 65
"""How `TAKE` ends when what it took has another digest: it prints which, and the part is gone."""
# Standard input is the rest, from byte $8 on, of the file $1 of $3 bytes with the sha256 $4; it
# lies in $2 until it is whole. Empty $5, $6, $7 leave mode, owner, group alone.
TAKE = (
    _SUM
    + _PLACE
    + f"""
set -e
if [ "$8" = 0 ]; then
  if [ -e "$2" ] || [ -L "$2" ]; then rm -f -- "$2"; fi
  begin "$1" "$5" "$6" "$7"
  (set -C && : >"$2")
  found=$(tee -a -- "$2" | sum "$3")
else
  if [ -L "$2" ] || [ ! -O "$2" ]; then echo "'$2' is not ours any more" >&2; exit 1; fi
  plain=
  found=$({{ cat -- "$2"; tee -a -- "$2"; }} | sum "$3")
fi
# The digest is of what came; that all of it lies there, and nothing else, its size says.
size=$(stat -c %s -- "$2")
if [ "$size" != "$3" ]; then echo "$size bytes of $3 have arrived" >&2; exit 1; fi
if [ "${{found%% *}}" != "$4" ]; then
  rm -f -- "$2"
  echo "${{found%% *}}"
  exit {DIFFERS}
fi
place "$2" "$1" "$5" "$6" "$7"
"""
)
# Of the file $1 mode and size, its sha256, and the sha256 of its first $2 bytes, each on a line.
SEEN = (
    _SUM
    + """
if [ -e "$1" ] && [ ! -f "$1" ]; then echo "it is no file" >&2; exit 1; fi
told=$(stat -L -c '%a %s' -- "$1") || exit 1
echo "$told"
size=${told#* }
sum "$size" <"$1" || exit 1
if [ "$2" -gt 0 ] && [ "$2" -le "$size" ]; then head -c "$2" -- "$1" | sum "$2"; fi
"""
)
