"""Sends what devices at home publish to a mosquitto on to Roomtide's HTTP API. Needs mosquitto_sub and Python only.

    ROOMTIDE_URL=https://ID.execute-api.REGION.amazonaws.com ROOMTIDE_TOKEN=rt_... \\
        python3 docs/mosquitto/bridge.py [mosquitto_sub's options, such as -h broker -u user -P password]

It listens to Tasmota's `tele/DEVICE/SENSOR`, Shelly's `DEVICE/events/rpc` (Gen2 and later) and Zigbee2MQTT's
`zigbee2mqtt/NAME`, which are the makers' defaults. The broker keeps messages while the bridge is away: it has a
session with a name. A message that cannot be sent is tried again until it can; one that is refused is told and left.
Absent: retained messages, which are old; MQTT to AWS, which needs no bridge of this kind.
"""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TOPICS = ["tele/+/SENSOR", "+/events/rpc", "zigbee2mqtt/#"]
MAX_PAUSE = 60


def main():
    url, token = os.environ["ROOMTIDE_URL"].rstrip("/"), os.environ["ROOMTIDE_TOKEN"]
    words = ["mosquitto_sub", "-R", "-q", "1", "-c", "-i", "roomtide-bridge", "-F", "%x %t"]
    words += [word for topic in TOPICS for word in ("-t", topic)] + sys.argv[1:]
    # So that a service manager that ends the bridge ends its subscription too, whose messages then wait.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as broker:
        try:
            for line in broker.stdout:
                payload, topic = line.rstrip("\n").split(" ", 1)
                source = of(topic)
                if source and payload:
                    send(url, token, *source, bytes.fromhex(payload))
        finally:
            broker.terminate()
    sys.exit(broker.returncode)


def of(topic):
    """The format and the device of a topic, or None if the topic has no readings."""
    first, _, rest = topic.partition("/")
    if topic.startswith("tele/") and topic.endswith("/SENSOR"):
        return "tasmota", rest.removesuffix("/SENSOR")
    if topic.endswith("/events/rpc"):
        return "shelly", topic.removesuffix("/events/rpc")
    levels = rest.split("/")
    is_silent = levels[0] == "bridge" or levels[-1] in ("availability", "set", "get") or levels[-2:-1] in (["set"], ["get"])
    return None if first != "zigbee2mqtt" or is_silent else ("zigbee2mqtt", rest)


def send(url, token, payload_format, device, payload):
    address = f"{url}/readings/{payload_format}?" + urllib.parse.urlencode({"device": device})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    pause = 1
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(address, payload, headers), timeout=30).close()
            return
        except urllib.error.HTTPError as error:
            if error.code != 429 and error.code < 500:
                print(f"{device}: {error.code} {error.read().decode(errors='replace').strip()}", file=sys.stderr, flush=True)
                return
            why = error.code
        except OSError as error:
            why = error
        print(f"{device}: {why}; tries again in {pause} s", file=sys.stderr, flush=True)
        time.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE)


if __name__ == "__main__":
    main()
