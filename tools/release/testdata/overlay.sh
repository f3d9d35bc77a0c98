# Runs the script $1 on an overlay of this machine's system, with the packages $2 … in /packages.
set -eu
copy=$(mktemp -d)
mount -t tmpfs tmpfs "$copy"
mkdir "$copy/upper" "$copy/work" "$copy/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$copy/upper,workdir=$copy/work" "$copy/root"
mount -t proc proc "$copy/root/proc"
mount -t tmpfs tmpfs "$copy/root/run"
mount --rbind /dev "$copy/root/dev"
mkdir "$copy/root/packages"
cp "$@" "$copy/root/packages/"
chroot "$copy/root" sh "/packages/$(basename "$1")"
