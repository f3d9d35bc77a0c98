# Stops the service if it is removed: dpkg says "remove", rpm says that no version stays. An upgrade restarts it later, and one that fails leaves it
# running. A service that systemd does not stop, or does not know, keeps no package from being removed.
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now @NAME@.service ||
			echo "@NAME@ was not stopped: see systemctl status @NAME@" >&2
	fi
	;;
esac
