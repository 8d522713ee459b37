#!/usr/bin/env bash
# Install Debian packages as root or with sudo: apt-install.sh WHY PACKAGE...
set -eu

why=$1
shift

fail() {
  printf 'make: %s\n' "$why, and $1." "$2" >&2
  exit 1
}

if ! command -v apt-get >/dev/null; then
  fail "there is no apt-get here" "Install what your distribution has for: $*"
elif [ "$(id -u)" -eq 0 ]; then
  root=(env)
elif command -v sudo >/dev/null; then
  root=(sudo env)
else
  fail "this user is neither root nor has sudo" "Have an administrator run: apt-get install $*"
fi

echo "installing $* ($why) ..."
"${root[@]}" apt-get update -qq
"${root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
