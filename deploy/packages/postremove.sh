# Configuration, credentials and data stay: docs/without-kubernetes.md says how to remove them.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
