# Stops the service if it is removed: dpkg says "remove", rpm says that no version stays. An upgrade restarts it later, and one that fails leaves it
# running.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now @NAME@.service
	fi
	;;
esac
