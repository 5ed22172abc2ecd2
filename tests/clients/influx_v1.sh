#!/usr/bin/env bash
# Writes with Debian's influx, points and a line that is refused, and asks what InfluxDB's users ask first.
set -euo pipefail

address=${URL#http://}
influx_() { # influx_ TOKEN OPTION...
    influx -host "${address%:*}" -port "${address#*:}" -username anybody -password "$1" "${@:2}"
}
asked() { influx_ "$READ_TOKEN" -database sensors "$@"; }
same() { # same WHAT EXPECTED FOUND
    [[ $2 == "$3" ]] || { printf '%s: expected\n%s\nfound\n%s\n' "$@" && exit 1; }
}

for n in 0 1 2; do
    point="room,host=$CLIENT_HOST temp=$((20 + n)).5,ok=t $((1768147200 + 60 * n))000000000"
    influx_ "$TOKEN" -database sensors -execute "INSERT $point"
done
influx_ "$TOKEN" -database sensors -execute "INSERT room,host=${CLIENT_HOST}x temp" 2>&1 || true

# A registry that is a second old may not have the device yet.
for _ in {1..50}; do
    [[ $(asked -execute "SHOW TAG VALUES WITH KEY = host") == *"$CLIENT_HOST"* ]] && break
    sleep 0.1
done
within="host = '$CLIENT_HOST' AND time >= '2026-01-11T16:00:00Z' AND time < '2026-01-11T16:04:00Z'"
windows="SELECT mean(temp) FROM room WHERE $within GROUP BY time(2m)"
same rfc3339 'name: room
time                 mean
----                 ----
2026-01-11T16:00:00Z 21
2026-01-11T16:02:00Z 22.5' "$(asked -precision rfc3339 -execute "$windows")"
same csv 'name,time,mean
room,1768147200,21
room,1768147320,22.5' "$(asked -precision s -format csv -execute "$windows")"
json='{"results":[{"series":[{"name":"room","columns":["time","mean"],"values":[[1768147200000,21],[1768147320000,22.5]]}]}]}'
same json "$json" "$(asked -precision ms -format json -execute "$windows")"
same points '1768147200000000000 1 20.5' "$(asked -execute "SELECT * FROM room WHERE $within LIMIT 1" | tail -1 | tr -s ' ' | cut -d' ' -f1,3,4)"

found() { # found STATEMENT LINE
    asked -format csv -execute "$1" | grep -Fqx -- "$2" || { echo "$1 does not list $2:" && asked -execute "$1" && exit 1; }
}
found 'SHOW DATABASES' 'databases,sensors'
found 'SHOW MEASUREMENTS' 'measurements,room'
found 'SHOW TAG KEYS FROM room' 'room,host'
found "SHOW TAG VALUES FROM room WITH KEY = host" "room,host,$CLIENT_HOST"
found 'SHOW FIELD KEYS FROM room' 'room,temp,float'
found 'SHOW SERIES FROM room' "\"room,host=$CLIENT_HOST\""
# At a terminal: the database that is listed is chosen; every name is one of the same data.
typed=$(printf 'USE home\nprecision rfc3339\nSELECT count(temp) FROM room WHERE %s\nexit\n' "$within" |
    script -qec "influx -host ${address%:*} -port ${address#*:} -username anybody -password $READ_TOKEN" /dev/null)
[[ $typed == *'Using database home'* && $typed == *'2026-01-11T16:00:00Z 3'* ]] || { echo "$typed" && exit 1; }
