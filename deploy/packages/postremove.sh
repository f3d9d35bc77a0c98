# Configuration, credentials and data stay: docs/without-kubernetes.md says how to remove them.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
