# Installs the packages by dpkg, uses what they contain, and removes them.
set -eu
. /packages/use.sh

# An administrator may have made the user, with another group.
useradd --system --gid nogroup vedette-server
dpkg --install /packages/*.deb
check
test -e /usr/share/zsh/vendor-completions/_vedette || fail "zsh does not find its completion"

# What an administrator wrote stays over an upgrade and a removal.
echo 'a: b' >/etc/vedette/server/vedette-server.yml
dpkg --install /packages/*.deb
dpkg --remove vedette-server vedette-agent vedette
gone
dpkg --purge vedette-server vedette-agent vedette
gone

break_systemd
dpkg --install /packages/*.deb
dpkg --remove vedette-server vedette-agent vedette
gone
