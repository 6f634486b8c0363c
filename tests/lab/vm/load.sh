#!/bin/sh
# load MODULE [OPTION=VALUE…]: loads a module of the lab's machine and what it needs. Unload with rmmod.
here=${LAB_MODULES:-/modules}
bb=/bin/busybox
[ -x $bb ] || bb=/run/lab/busybox
name=$1
shift
wanted=$(echo "$name" | $bb tr - _)
for file in $($bb cat "$here/$name.order"); do
    module=$(echo "${file%.ko}" | $bb tr - _)
    [ -d "/sys/module/$module" ] && continue
    if [ "$module" = "$wanted" ]; then
        $bb insmod "$here/$file" "$@" || exit 1
    else
        $bb insmod "$here/$file" || exit 1
    fi
done
