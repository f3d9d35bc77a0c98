#!/bin/sh
# Installs what the nodes of test/node need besides their own programs, on Debian and as root. Where all of it is there already it
# returns at once.
set -eu

missing=""
for need in runc:runc iptables:iptables ipset:ipset ip:iproute2 busybox:busybox-static /usr/lib/cni/bridge:containernetworking-plugins; do
	command -v "${need%%:*}" >/dev/null || missing="$missing ${need#*:}"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
	echo "missing:$missing. Install them; a node needs root, too." >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing ||
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; }
