# Stops the service, except before an upgrade: dpkg says "upgrade", rpm says how many versions stay.
set -e
case "$1" in
upgrade | 1) ;;
*)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now @NAME@.service
	fi
	;;
esac
