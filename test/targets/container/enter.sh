#!/bin/sh
# Becomes a command in a root of its own, as a container has it: enter.sh ROOT pivot|chroot RUNTIME PACKAGES COMMAND...
# To be run in mount and pid namespaces of its own. What lies below /tracewright-* is nowhere else under that name.
set -e
root=$1 how=$2 runtime=$3 packages=$4
shift 4
mount -t tmpfs none "$root"
for one in usr lib lib64 bin etc dev; do
  [ ! -e "/$one" ] || { mkdir "$root/$one" && mount --rbind "/$one" "$root/$one"; }
done
mkdir "$root/tracewright-app" "$root/tracewright-runtime" "$root/tracewright-packages" "$root/proc" "$root/tmp" "$root/old"
mount --rbind "$(dirname "$0")" "$root/tracewright-app"
mount --rbind "$runtime" "$root/tracewright-runtime"
mount --rbind "$packages" "$root/tracewright-packages"
mount -t proc proc "$root/proc"
ip link set lo up 2>/dev/null || true
cd "$root"
if [ "$how" = chroot ]; then exec chroot . "$@"; fi
pivot_root . old
umount -l /old
exec "$@"
