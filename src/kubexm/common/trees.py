"""How the files of an archive come to their places: a script, known to hosts real and simulated."""

from __future__ import annotations

# The files in the archive $2 come below the directory $1, each whole; of what is new in it, a
# directory comes with all that it holds. Empty $3, $4 leave owner and group as they are in the
# archive; $5 is the mode of the directory if it has to be made.
PUT_IN_PLACE = """
set -e
top=$1
new=$top/.kubexm-tree
if [ ! -d "$top" ]; then
  mkdir -p -m "${5:-0755}" -- "$top"
  [ -z "$3" ] || chown -- "$3" "$top"
  [ -z "$4" ] || chgrp -- "$4" "$top"
fi
rm -rf -- "$new"
trap 'rm -rf -- "$new"' EXIT
mkdir -m 0700 -- "$new"
cd "$new"
tar -xpf "$2" --numeric-owner
[ -z "$3" ] || chown -hR -- "$3" .
[ -z "$4" ] || chgrp -hR -- "$4" .
sync -f .
all=$(find . -mindepth 1 -type d)
printf '%s\n' "$all" | while IFS= read -r dir; do
  if [ -d "$dir" ] && [ ! -e "$top/$dir" ]; then mv -T -- "$dir" "$top/$dir"; fi
done
left=$(find . -type d)
printf '%s\n' "$left" | while IFS= read -r dir; do
  find "$dir" -maxdepth 1 ! -type d -exec mv -f -t "$top/$dir" -- {} +
done
"""
