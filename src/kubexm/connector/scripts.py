"""What a shell does on a host for several connectors; data comes as arguments and as input."""

from __future__ import annotations

import hashlib
import re

from kubexm.connector.base import C_LOCALE, Script, script

INLINE = 48 << 10
"""Input up to this size reaches a command whole or not at all."""
HANDED = "c"
"""Asks whether all of the input has come, in a shell that was handed it."""
# For files that come into being beside their place, under `set -e`. begin TARGET MODE OWNER GROUP:
# only we may read what is written from now on, unless it gets the usual mode anyway. place PART
# TARGET MODE OWNER GROUP: the part, which is on the disk, becomes the target; what is empty is left
# as it was there.
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
  mv -fT -- "$1" "$2"
}
"""
# Prints the sha256 of standard input, of which $1 bytes are expected. OpenSSL uses what the
# processor has for it and is several times as fast as sha256sum, but takes longer to start.
_SUM = """
sum() {
  if [ "$1" -gt 524288 ] && command -v openssl >/dev/null; then
    exec openssl dgst -sha256 -r
  else
    exec sha256sum
  fi
}
"""
DIFFERS = 65
"""How `TAKE` ends when what came has another digest: it prints which, and the part is gone."""
# The file $1 gets what $7 says, or without that as many bytes of standard input as $5 says; empty
# $2, $3, $4 leave mode, owner, group alone. Who sends them may be gone before the last one: $6 is
# their sha256, or says whom to ask. `tee` says what is wrong with a disk, a shell does not.
WRITE = (
    _SUM
    + _PLACE
    + f"""
set -e
path=${{1%"${{1##*[!/]}}"}}
tmp=${{path%/*}}/.${{path##*/}}.kubexm
if [ -e "$tmp" ] || [ -L "$tmp" ]; then rm -f -- "$tmp"; fi
# Who is gone does not hear what was wrong; that must not keep us from cleaning up.
trap '' PIPE
trap 'rm -f -- "$tmp"' EXIT
begin "$1" "$2" "$3" "$4"
if [ $# -gt 6 ]; then
  set -C
  {{ printf %s "$7" >"$tmp"; }} 2>/dev/null || printf %s "$7" | tee -- "$tmp" >/dev/null
  set +C
  sync -- "$tmp"
else
  dd of="$tmp" bs=64k count="$5" iflag=fullblock,count_bytes conv=excl,fsync status=none
fi
case $6 in
  '') ;;
  {HANDED}) {HANDED} ;;
  *) found=$(sum "$5" <"$tmp") && [ "${{found%% *}}" = "$6" ] ;;
esac || {{ echo "it has not arrived whole" >&2; exit 1; }}
place "$tmp" "$1" "$2" "$3" "$4"
trap - EXIT
"""
)


def writing(
    path: str, data: bytes, looks: tuple[str, str, str], check: str = "", *, sudo: bool
) -> Script:
    """The command that makes its input a file with this mode, owner and group."""
    return script(WRITE, path, *looks, str(len(data)), check, env=C_LOCALE, sudo=sudo)


def check_of(data: bytes) -> str:
    """The check of input that is not handed over: its sha256, if it could come in part."""
    return hashlib.sha256(data).hexdigest() if len(data) > INLINE else ""


def wanted(mode: int | None, owner: str | None, group: str | None) -> tuple[str, str, str]:
    """Mode, owner and group as the words of a script."""
    return ("" if mode is None else f"{mode:04o}", owner or "", group or "")


# As many bytes as $1 says of standard input, which was handed over, become that of the command in
# the other words: it must not begin before they are all there. They lie in a file without a name.
KEEP = f"""
set -e
file=$(mktemp)
exec 3>"$file" 4<"$file"
rm -f -- "$file"
head -c "$1" >&3
{HANDED} || {{ echo "its input has not arrived whole" >&2; exit 126; }}
exec <&4 3>&- 4<&-
shift
exec "$@"
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
# Standard input is the rest, from byte $8 on, of the file $1 of $3 bytes; it lies in $2 until it is
# whole. $4 is the sha256 of the file, or says whom to ask whether all has come. Empty $5, $6, $7
# leave mode, owner, group alone.
TAKE = (
    _SUM
    + _PLACE
    + f"""
set -e
# Without its cache, the file is on its way to the disk while it comes.
taken() {{
  dd of="$1" bs=256k count="$2" iflag=fullblock,count_bytes oflag=append,nocache \\
    conv="$3",fsync status=none
}}
if [ "$8" = 0 ]; then
  if [ -e "$2" ] || [ -L "$2" ]; then rm -f -- "$2"; fi
  begin "$1" "$5" "$6" "$7"
  taken "$2" "$3" excl,notrunc
else
  if [ -L "$2" ] || [ ! -O "$2" ]; then echo "'$2' is not ours any more" >&2; exit 1; fi
  plain=
  taken "$2" $(($3 - $8)) nocreat,notrunc
fi
# That all of it lies there, and nothing else, its size says.
size=$(stat -c %s -- "$2")
if [ "$size" != "$3" ]; then echo "$size bytes of $3 have arrived" >&2; exit 1; fi
if [ "$4" = {HANDED} ]; then
  {HANDED} || {{ echo "it has not arrived whole" >&2; exit 1; }}
else
  found=$(sum "$3" <"$2")
  if [ "${{found%% *}}" != "$4" ]; then rm -f -- "$2"; echo "${{found%% *}}"; exit {DIFFERS}; fi
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
(sum "$size" <"$1") || exit 1
if [ "$2" -gt 0 ] && [ "$2" -le "$size" ]; then head -c "$2" -- "$1" | sum "$2"; fi
"""
)


_LINE = re.compile(r"^(?:/bin/)?sh: (?:line )?\d+: ")


def reason(said: str) -> str:
    """What a script said went wrong, without the line of it in which it did."""
    return _LINE.sub("", said)
