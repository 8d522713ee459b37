"""What ends running commands when kubexm itself is killed: a shell at the end of a pipe.

Only kubexm holds the other end, so the kernel closes it however kubexm dies. A parent-death
signal would not do: it reaches one process, not its group, and sudo clears it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess

# Its arguments are the groups so far, and those that only sudo may signal: it is never without
# them. Lines are `+ GROUP`, `- GROUP`, and `s GROUP` for one that only sudo may signal.
_SCRIPT = """
plain=$1 rooted=$2
without() { for one in $2; do [ "$one" = "$1" ] || printf '%s ' "$one"; done; }
signal() {
  for one in $plain; do kill -s "$1" -- "-$one"; done
  for one in $rooted; do sudo -n kill -s "$1" -- "-$one"; done
}
alive() {
  for one in $plain; do kill -s 0 -- "-$one" && return 0; done
  for one in $rooted; do sudo -n kill -s 0 -- "-$one" && return 0; done
  return 1
}
while read -r sign group; do
  case $sign in
    +) plain="$plain $group" ;;
    s) rooted="$rooted $group" ;;
    -) plain=$(without "$group" "$plain") rooted=$(without "$group" "$rooted") ;;
  esac
done
[ -n "${plain# }${rooted# }" ] || exit 0
signal TERM
for pause in 0.1 0.2 0.3 0.4 1; do alive || exit 0; sleep "$pause"; done
signal KILL
"""


class Watch:
    """Process groups that must not outlive this process."""

    def __init__(self) -> None:
        self._groups: dict[int, bool] = {}
        self._shell: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def add(self, group: int, *, sudo: bool) -> None:
        """End this group when we die; `sudo` if it runs as another user."""
        self._groups[group] = sudo
        self._tell(f"{'s' if sudo else '+'} {group}\n")

    def remove(self, group: int) -> None:
        """The group has ended, or what is left of it may stay."""
        if self._groups.pop(group, None) is not None:
            self._tell(f"- {group}\n")

    async def close(self) -> None:
        """Let the shell go; a later `add` starts another."""
        shell, self._shell = self._shell, None
        if shell is not None:
            os.close(self._pipe)
            await asyncio.to_thread(shell.wait)

    def _tell(self, line: str) -> None:
        if self._shell is None:
            self._start()
            return
        try:
            os.write(self._pipe, line.encode())
        except BrokenPipeError:
            # Somebody killed the shell: another takes over with all that is known.
            os.close(self._pipe)
            self._shell.wait()
            self._start()

    def _start(self) -> None:
        source, self._pipe = os.pipe()
        self._shell = subprocess.Popen(
            ("sh", "-c", _SCRIPT, "watch", self._told(sudo=False), self._told(sudo=True)),
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            # A signal to our own group, such as Ctrl-C, is not meant for it.
            start_new_session=True,
        )
        os.close(source)

    def _told(self, *, sudo: bool) -> str:
        return " ".join(str(group) for group, rooted in self._groups.items() if rooted is sudo)
