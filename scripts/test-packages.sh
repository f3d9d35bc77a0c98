#!/bin/sh
# Installs what the tests of packages need besides dpkg, on Debian and as root: rpm, and systemd's programs that make users and directories. Where all
# of it is there already it returns at once. Elsewhere the tests skip what is missing, and say so.
set -eu

missing=""
for need in rpm:rpm systemd-sysusers:systemd; do
	command -v "${need%%:*}" >/dev/null || missing="$missing ${need#*:}"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
	echo "missing:$missing. Tests of packages are skipped." >&2
	exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing ||
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; }
