#!/usr/bin/env bash
# Writes with Debian's influx: points and a line that is refused.
set -euo pipefail

address=${URL#http://}
influx_() { influx -host "${address%:*}" -port "${address#*:}" -username anybody -password "$TOKEN" "$@"; }
for n in 0 1 2; do
    point="room,host=$CLIENT_HOST temp=$((20 + n)).5,ok=t $((1768147200 + 60 * n))000000000"
    influx_ -database sensors -execute "INSERT $point"
done
influx_ -database sensors -execute "INSERT room,host=${CLIENT_HOST}x temp" 2>&1 || true
