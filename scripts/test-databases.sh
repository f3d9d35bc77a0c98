#!/bin/sh
# Installs the database servers that the store's tests start for themselves, and
# the sqlite3 with which the documentation makes backups, on Debian and as root.
# With "several-machines" it also installs what databases of several machines need:
# Galera, Patroni, PgBouncer and HAProxy.
# Where all are there already it returns at once. The packages' own services stay
# off: the tests run their own, on free ports.
set -eu

have() {
	for path in "$@"; do
		[ -x "$path" ] && return 0
	done
	return 1
}

missing=""
have /usr/lib/postgresql/*/bin/postgres || missing="postgresql"
have /usr/sbin/mariadbd || missing="$missing mariadb-server"
command -v sqlite3 >/dev/null || missing="$missing sqlite3"
if [ "${1:-}" = several-machines ]; then
	[ -e /usr/lib/galera/libgalera_smm.so ] || missing="$missing galera-4"
	command -v patroni >/dev/null || missing="$missing patroni"
	# Patroni's client of etcd is an optional package.
	[ -e /usr/lib/python3/dist-packages/etcd/client.py ] || missing="$missing python3-etcd"
	have /usr/sbin/pgbouncer || missing="$missing pgbouncer"
	have /usr/sbin/haproxy || missing="$missing haproxy"
fi
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
	echo "missing:$missing. Install them, or set VEDETTE_TEST_POSTGRES and VEDETTE_TEST_MYSQL to the URLs of servers." >&2
	exit 1
fi

# A policy-rc.d that answers 101 keeps maintainer scripts from starting
# services. One that an administrator put there stays as it is.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing ||
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; }
