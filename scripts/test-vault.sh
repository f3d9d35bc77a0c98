#!/bin/sh
# Builds the Vault that tests start, from tools/vault, and prints its path. The result is kept in
# the cache of the control planes' programs (VEDETTE_CACHE, or vedette in the user's cache directory), so
# that a build happens once per version and Go release. Builds at the same time wait for each other.
set -eu

cd "$(dirname "$0")/../tools/vault"
cache=${VEDETTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vedette}/vault
key=$({ cat go.mod go.sum main.go; go version; } | sha256sum | cut -c1-16)
program=$cache/$key/vault

if [ ! -x "$program" ]; then
	mkdir -p "$cache/$key"
	exec 9>"$cache/lock"
	command -v flock >/dev/null && flock 9
	if [ ! -x "$program" ]; then
		echo "building Vault (once; cached in $cache)" >&2
		CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$program.new" . >&2
		mv "$program.new" "$program"
	fi
fi
echo "$program"
