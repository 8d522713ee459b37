#!/usr/bin/env bash
# Unpack a Debian package into a directory, without installing it: unpack-package.sh PACKAGE DIRECTORY
# A package that brings a service would start it; all that is wanted of it are its programs.
set -eu

package=$1
directory=$2

if ! command -v apt-get >/dev/null; then
  echo "there is no apt-get here: tests that run $package are skipped" >&2
  exit 0
fi
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
echo "unpacking $package into $directory ..."
chmod 755 "$place"
download() { (cd "$place" && apt-get download -qq "$package" >/dev/null 2>&1); }
if ! download; then
  [ "$(id -u)" -ne 0 ] || apt-get update -qq
  if ! download; then
    echo "$package can't be downloaded: tests that run it are skipped (try apt-get update)" >&2
    exit 0
  fi
fi
mkdir -p "$directory"
dpkg-deb -x "$place"/*.deb "$directory"
