"""Sends what devices at home publish to a mosquitto on to Roomtide's HTTP API. Needs mosquitto_sub and Python only.

    ROOMTIDE_URL=https://INGEST.lambda-url.REGION.on.aws ROOMTIDE_TOKEN=rt_... \\
        python3 docs/mosquitto/bridge.py [mosquitto_sub's options, such as -h broker -u user -P password]

It listens to what TOPICS lists, which are the makers' defaults. The broker keeps messages while the bridge is away: it
has a session with a name. A message that cannot be sent is tried again until it can; one that is refused is told and
left, and what is not stored of a device's messages is told once. Absent: retained messages, which are old; MQTT to
AWS, which needs no bridge of this kind; topics of single values but ESPHome's.
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TOPICS = [
    "tele/+/SENSOR",  # Tasmota: tele/DEVICE/SENSOR
    "tele/+/STATE",
    "+/events/rpc",  # Shelly, the second generation and later: DEVICE/events/rpc
    "shellies/+/info",  # Shelly, the first generation: shellies/DEVICE/info
    "zigbee2mqtt/#",  # Zigbee2MQTT: zigbee2mqtt/NAME, whose name may have several levels
    "v3/+/devices/+/up",  # The Things Stack
    "application/+/device/+/event/up",  # ChirpStack
    "application/+/device/+/event/status",
    "+/sensor/+/state",  # ESPHome: NODE/sensor/NAME/state
    "+/binary_sensor/+/state",
    "+/switch/+/state",
]
# The forms of topics with the format and the device; a message of ESPHome is one value, whose name is the metric.
FORMATS = [
    (r"tele/([^/]+)/(?:SENSOR|STATE)", "tasmota"),
    (r"(.+)/events/rpc", "shelly"),
    (r"shellies/([^/]+)/info", "shelly"),
    (r"v3/[^/]+/devices/([^/]+)/up", "ttn"),
    (r"application/[^/]+/device/([^/]+)/event/(?:up|status)", "chirpstack"),
    (r"([^/]+)/(?:sensor|binary_sensor|switch)/([^/]+)/state", "esphome"),
]
WORDS = {"ON": 1, "OFF": 0}
MAX_PAUSE = 60
told = set()


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
                message = payload and request(topic, bytes.fromhex(payload))
                if message:
                    send(url, token, *message)
        finally:
            broker.terminate()
    sys.exit(broker.returncode)


def request(topic, payload):
    """The device, the address behind the API's and the body of a message, or None if the topic has no readings."""
    if topic.startswith("zigbee2mqtt/"):
        return zigbee(topic.removeprefix("zigbee2mqtt/"), payload)
    for form, name in FORMATS:
        found = re.fullmatch(form, topic)
        if found and name == "esphome":
            return value(*found.groups(), payload)
        if found:
            return found[1], address(name, found[1]), payload
    return None


def zigbee(name, payload):
    levels = name.split("/")
    is_silent = levels[0] == "bridge" or levels[-1] in ("availability", "set", "get") or levels[-2:-1] in (["set"], ["get"])
    if is_silent:
        return None
    if not payload.lstrip().startswith(b"{"):
        # With `output: attribute` each value has a topic of its own, which does not say whose it is.
        tell("Zigbee2MQTT publishes single values, which are not read: set `output: json` in its settings")
        return None
    return name, address("zigbee2mqtt", name), payload


def address(payload_format, device):
    return f"/readings/{payload_format}?" + urllib.parse.urlencode({"device": device})


def value(node, name, payload):
    """One value of ESPHome as a reading of its node. A sensor that has no value yet says `nan`."""
    text = payload.decode(errors="replace").strip()
    metric = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:64]
    try:
        number = WORDS[text] if text in WORDS else float(text)
    except ValueError:
        tell(f"{node}: not stored: {name}, which is no number")
        return None
    if not math.isfinite(number) or not re.match("[a-z]", metric):
        return None
    return node, "/readings", json.dumps({"device_id": node, metric: number}).encode()


def send(url, token, device, path, payload):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    pause = 1
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(url + path, payload, headers), timeout=30) as response:
                answer = response.read()
            ignored = json.loads(answer).get("ignored") if answer else None
            if ignored:
                tell(f"{device}: not stored: {', '.join(ignored)}")
            return
        except urllib.error.HTTPError as error:
            if error.code != 429 and error.code < 500:
                say(f"{device}: {error.code} {error.read().decode(errors='replace').strip()}")
                return
            why = error.code
        except OSError as error:
            why = error
        say(f"{device}: {why}; tries again in {pause} s")
        time.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE)


def tell(text):
    """Says something once, however often it happens."""
    if text not in told:
        told.add(text)
        say(text)


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
