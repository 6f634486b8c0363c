#!/usr/bin/env bash
# A microphone without a sound card: a PulseAudio of our own with a null sink, whose monitor ALSA's default opens.
# Run by hand: pulse.sh start DIR | env DIR | unplug DIR | plug DIR | play DIR FILE.wav | stop DIR
# Or source it and call the functions of the same meaning: pulse_start DIR, pulse_env DIR, …
# After `start`, programs that have DIR/env in their environment hear what `play` plays.

pulse_packages=(pulseaudio pulseaudio-utils libasound2-plugins alsa-utils)

# Starts the sound server and plugs the microphone in. DIR is created.
pulse_start() {
    local dir=$1
    mkdir -p "$dir/run" "$dir/home"
    chmod 700 "$dir/run"
    dir=$(cd "$dir" && pwd)
    pulse_write_config "$dir"
    (
        pulse_env "$dir"
        HOME=$dir/home exec pulseaudio -n --daemonize=no --exit-idle-time=-1 --disallow-exit --use-pid-file=no \
            --log-target=stderr \
            -L "module-native-protocol-unix socket=$dir/native auth-anonymous=1" > "$dir/pulse.log" 2>&1
    ) &
    echo $! > "$dir/pid"
    pulse_wait "$dir"
    pulse_plug "$dir"
}

# Stock definitions first, then ours. A name with a hint is listed by `percept devices`.
pulse_write_config() {
    local dir=$1 server
    server="type pulse server \"unix:$dir/native\""
    cat > "$dir/asound.conf" << CONF
</usr/share/alsa/alsa.conf>
pcm.!default { $server device "mic.monitor" hint { show on description "lab microphone (default)" } }
ctl.!default { $server }
pcm.labmic { $server device "mic.monitor" hint { show on description "lab microphone" } }
CONF
    cat > "$dir/env" << CONF
export ALSA_CONFIG_PATH=$dir/asound.conf
export PULSE_SERVER=unix:$dir/native
export PULSE_RUNTIME_PATH=$dir/run
export PULSE_COOKIE=$dir/cookie
CONF
}

# The environment of programs that should hear the microphone, into this shell.
pulse_env() {
    # shellcheck source=/dev/null
    . "$1/env"
}

pulse_wait() {
    local dir=$1 tries=100
    until (pulse_env "$dir" && pactl info > /dev/null 2>&1); do
        tries=$((tries - 1))
        if [ "$tries" -eq 0 ] || ! kill -0 "$(cat "$dir/pid")" 2> /dev/null; then
            echo "the sound server did not start:" >&2
            cat "$dir/pulse.log" >&2
            return 1
        fi
        sleep 0.1
    done
}

# Without norewinds the first buffer comes two seconds late.
pulse_plug() {
    (
        pulse_env "$1"
        pactl load-module module-null-sink sink_name=mic rate=48000 channels=1 format=s16le norewinds=1 > "$1/module"
        pactl set-default-source mic.monitor
    )
}

# The microphone is gone; the sound server stays.
pulse_unplug() { (pulse_env "$1" && pactl unload-module "$(cat "$1/module")"); }

# Plays a file to its end into the microphone.
pulse_play() { (pulse_env "$1" && paplay -d mic "$2"); }

# Ends the sound server; whatever it says, the folder may be deleted afterwards.
pulse_stop() {
    local pid
    pid=$(cat "$1/pid")
    kill "$pid" 2> /dev/null || true
    while kill -0 "$pid" 2> /dev/null; do sleep 0.1; done
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -euo pipefail
    # shellcheck source=/dev/null
    . "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
    case ${1:-} in
        start)
            ensure_packages "${pulse_packages[@]}"
            pulse_start "${2:?folder}"
            ;;
        env) cat "${2:?folder}/env" ;;
        play) pulse_play "${2:?folder}" "${3:?file}" ;;
        plug | unplug | stop) "pulse_$1" "${2:?folder}" ;;
        *) fail "usage: pulse.sh start|env|unplug|plug|play|stop DIR [FILE.wav]" ;;
    esac
fi
