# Creates the user and the directories. The service is neither enabled nor started, because it has no configuration yet; an
# upgrade restarts it if it runs. A service that does not start leaves no package half installed.
set -e
systemd-sysusers @NAME@.conf
systemd-tmpfiles --create @NAME@.conf
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload && systemctl try-restart @NAME@.service ||
		echo "@NAME@ was not restarted: see systemctl status @NAME@" >&2
fi
