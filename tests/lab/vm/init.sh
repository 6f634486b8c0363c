#!/bin/busybox sh
# The first program of the lab's machine. Its root is the host's, read-only, under a layer in memory; /out is the one
# folder shared for writing. Runs /out/command there, leaves its output in /out/log and its end in /out/code.
# shellcheck shell=dash
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
$b mkdir -p /dev/pts /dev/shm
$b mount -t devpts devpts /dev/pts
$b mount -t tmpfs shm /dev/shm

for module in virtio_pci 9pnet_virtio 9p overlay; do $b sh /modules/load $module; done
share=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o ro,cache=loose,$share host /lower || $b poweroff -f
$b mount -t tmpfs layer /upper
$b mkdir -p /upper/layer /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/layer,workdir=/upper/work overlay /root || $b poweroff -f
$b mkdir -p /root/out
$b mount -t 9p -o rw,$share out /root/out

# shellcheck source=/dev/null
. /root/out/settings
# shellcheck disable=SC2154  # settings has it
for module in $lab_modules; do
    name=$(echo "$module" | $b tr - _)
    eval "options=\$lab_options_$name"
    # shellcheck disable=SC2086,SC2154  # one option a word, set by eval
    $b sh /modules/load "$module" $options
done

for folder in proc sys dev; do $b mount -o move /$folder /root/$folder; done
$b mount -t tmpfs run /root/run
$b mkdir -p /root/run/dbus /root/run/lock /root/run/lab
$b cp -r /modules /root/run/lab/modules
$b cp $b /root/run/lab/busybox
$b ifconfig lo 127.0.0.1 up
echo "lab: booted after $($b cut -d' ' -f1 /root/proc/uptime) s"
$b cut -d' ' -f1 /root/proc/uptime > /root/out/booted
$b chroot /root /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
    LAB_MODULES=/run/lab/modules /bin/bash /out/command > /root/out/log 2>&1
echo $? > /root/out/code
$b cut -d' ' -f1 /root/proc/uptime > /root/out/ended
$b sync
$b poweroff -f
