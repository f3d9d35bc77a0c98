# Installs the packages by rpm, uses what they contain, and removes them. Debian's rpm knows no packages of its own system, so dependencies
# are checked by their names only.
set -eu
. /packages/use.sh
options="--nodeps --force-debian"

for package in /packages/*.rpm; do
	rpm --checksig --nosignature "$package" | grep -q 'digests OK' || fail "$package has wrong digests"
	rpm --query --package --qf '%{VERSION} %{LICENSE} %{BUILDHOST}\n' "$package" | grep -qx '0.1.0~rc.1 Apache-2.0 vedette' || fail "$package has other properties"
done
for name in vedette-server vedette-agent; do
	rpm --query --package --requires /packages/$name-[0-9]*.rpm | grep -qx systemd || fail "$name does not require systemd"
done

rpm --install $options /packages/*.rpm
check
test -e /usr/share/zsh/site-functions/_vedette || fail "zsh does not find its completion"
for name in vedette-server vedette-agent vedette; do
	rpm --verify --nodeps $name || fail "$name is not installed as it is packed"
	# Whoever installed it owns it: nobody else may change a program that root or a service runs.
	if rpm --query --qf '[%{FILEUSERNAME}:%{FILEGROUPNAME} %{FILENAMES}\n]' $name | grep -v '^root:root '; then
		fail "$name has files of others"
	fi
	if rpm --query --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' $name | grep '^[^l]....w\|^[^l].......w\|^...s\|^......s'; then
		fail "$name has files that others may change, or that run as their owner"
	fi
done

# What an administrator wrote stays over an upgrade and a removal.
echo 'a: b' >/etc/vedette/server/vedette-server.yml
rpm --upgrade --force $options /packages/*.rpm
check
test "$(rpm --query --all | grep -c '^vedette')" = 3 || fail "after an upgrade, these are installed: $(rpm --query --all)"
rpm --erase $options vedette-server vedette-agent vedette
gone
id vedette-server >/dev/null || fail "the user of what stays is gone"

break_systemd
rpm --install $options /packages/*.rpm
rpm --upgrade --force $options /packages/*.rpm
rpm --erase $options vedette-server vedette-agent vedette
gone

# rpm says to scripts how many versions stay, dpkg what it does. Only a removal stops a service.
mkdir -p /run/systemd/system /packages/bin
printf '#!/bin/sh\necho "$*" >>/packages/systemctl.log\n' >/packages/bin/systemctl
chmod 755 /packages/bin/systemctl
rpm --query --package --qf '%{PREUN}\n' /packages/vedette-server-[0-9]*.rpm >/packages/preremove.sh
for argument in 1 upgrade failed-upgrade deconfigure remove 0; do
	echo "$argument:" >>/packages/systemctl.log
	PATH=/packages/bin:$PATH sh /packages/preremove.sh $argument
done
tr '\n' ' ' </packages/systemctl.log | grep -qx '1: upgrade: failed-upgrade: deconfigure: remove: disable --now vedette-server.service 0: disable --now vedette-server.service ' ||
	fail "the script before a removal did: $(cat /packages/systemctl.log)"
