#!/usr/bin/env bash
# Unpack a Debian package into a directory, without installing it: unpack-package.sh PACKAGE DIRECTORY
# A package that brings a service would start it; all that is wanted of it are its programs, and the
# libraries they need that this machine does not have.
set -eu

package=$1
directory=$2

without() {
  if [ -n "${REQUIRE_ALL:-}" ]; then
    echo "$1: REQUIRE_ALL wants the tests that run $package" >&2
    exit 1
  fi
  echo "$1: tests that run $package are skipped${2:-}" >&2
  exit 0
}

command -v apt-get >/dev/null || without "there is no apt-get here"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"

download() { (cd "$place" && apt-get download -qq "$1" >/dev/null 2>&1); }

libraries() {
  apt-cache depends --important "$1" 2>/dev/null | sed -n 's/^ *Depends: \(lib[^ ]*\)$/\1/p'
}

is_installed() { dpkg-query --show --showformat '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

download_with_libraries() {
  local library
  download "$1" || return 1
  for library in $(libraries "$1"); do
    is_installed "$library" || compgen -G "$place/${library}_*.deb" >/dev/null ||
      download_with_libraries "$library" || return 1
  done
}

echo "unpacking $package into $directory ..."
if ! download_with_libraries "$package"; then
  [ "$(id -u)" -ne 0 ] || apt-get update -qq
  download_with_libraries "$package" ||
    without "$package can't be downloaded" " (try apt-get update)"
fi
mkdir -p "$directory"
for archive in "$place"/*.deb; do
  dpkg-deb -x "$archive" "$directory"
done
