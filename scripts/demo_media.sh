#!/usr/bin/env bash
# Fetches what the demo session is made of, out of Debian packages, into DIR.
#
# Packages are downloaded and unpacked there, about 12 MB in all: nothing is installed, no root is needed.
#   DIR/root     recorded speech and sounds, photographs, and gpsd where this machine has none
#   DIR/gps      receiver logs from gpsd's source package
# A package that this Debian lacks is named and left out; the demo makes do with the others.
# A second call returns at once.
#
# usage: demo_media.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

dir=${1:?usage: demo_media.sh DIR}
mkdir -p "$dir/root" "$dir/gps" "$dir/deb/partial"
dir=$(cd "$dir" && pwd)
if [ -e "$dir/complete" ]; then exit 0; fi

media_packages=(
    alsa-utils                # a woman's voice naming loudspeakers
    sound-icons               # a trumpet and other instruments
    sound-theme-freedesktop   # telephone, camera shutter, paper, alarm clock
    mate-media-common         # a dog, glass
    gnome-control-center-data # photographs: cat, coffee, bicycle, mountain and others
    python3-sklearn           # photographs: a palace, a flower
)
receiver_logs=(
    ublox-zed-f9p_hpg1.11.log # eleven minutes at one place
    bundg_zeus_9.log          # a boat under way
)

say "reading Debian's package lists, sources included"
private_apt "$dir/apt" "$(dpkg --print-architecture)" /var/lib/dpkg/status

say "downloading the demo's sounds and photographs"
cd "$dir/deb"
for package in "${media_packages[@]}"; do
    if ! apt-get download -qq "$package"; then say "no package $package here: the demo goes without it"; fi
done
if [ ! -x /usr/sbin/gpsd ]; then
    # With what it depends on; unpacked beside the media, so that no service starts on this machine.
    apt-get install -qq -y --download-only --no-install-recommends -o Dir::Cache::archives="$dir/deb" gpsd > /dev/null
fi
for file in *.deb; do dpkg-deb -x "$file" "$dir/root"; done
rm -f -- *.deb

say "downloading receiver logs from gpsd's source package"
apt-get source -qq --download-only gpsd
# The archive's signature may stand beside it.
archive=$(find . -name 'gpsd_*.orig.tar.*' ! -name '*.asc' | head -n 1)
for log in "${receiver_logs[@]}"; do
    tar -xf "$archive" --wildcards --strip-components=3 -C "$dir/gps" "*/test/daemon/$log"
done
rm -rf "$dir/deb" "$dir/apt"
touch "$dir/complete"
