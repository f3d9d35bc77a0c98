# What both formats have in common.
fail() { echo "$*" >&2; exit 1; }
owner() { test "$(stat -c '%U:%G %a' "$1")" = "$2" || fail "$1 is $(stat -c '%U:%G %a' "$1"), want $2"; }

# check uses what the packages contain.
check() {
	owner /etc/vedette/server 'root:vedette-server 750'
	owner /etc/vedette/server/tls 'root:vedette-server 750'
	owner /etc/vedette/agent/kubeconfigs 'root:vedette-agent 750'
	owner /usr/bin/vedette-agent 'root:root 755'
	for program in vedette-server vedette-agent; do
		$program version | grep -q '^v0.1.0-rc.1$' || fail "$program has no version"
		grep -q "^ExecStart=/usr/bin/$program " /usr/lib/systemd/system/$program.service || fail "$program.service runs something else"
		id $program >/dev/null
	done
	kubectl-vedette --version | grep -q 'v0.1.0-rc.1' || fail "the plugin of kubectl does not run"
	kubectl_complete-vedette acc | grep -q '^accounts' || fail "the plugin's completion does not complete"
	for page in man8/vedette-server.8 man8/vedette-agent.8 man1/vedette.1 man1/vedette-get.1; do
		zcat /usr/share/man/$page.gz | grep -q '^.SH NAME' || fail "$page is not a manual page"
	done
	bash -n /usr/share/bash-completion/completions/vedette
}

# break_systemd lets systemd run, and refuse everything: a service that does not start must not leave a package half installed.
break_systemd() {
	mkdir -p /run/systemd/system
	printf '#!/bin/sh\nexit 1\n' >/usr/bin/systemctl
}

# gone checks that what was installed is not there any more, but what an administrator wrote is.
gone() {
	for program in vedette-server vedette-agent vedette kubectl-vedette; do
		test ! -e /usr/bin/$program || fail "$program is left"
	done
	test ! -e /usr/lib/systemd/system/vedette-server.service || fail "the service is left"
	test -e /etc/vedette/server/vedette-server.yml || fail "the configuration is gone"
}
