"""Publishes to a real mosquitto and finds the readings in a local system, by way of docs/mosquitto/bridge.py.

    python3 tests/mosquitto/check.py

The server asks for tokens, and the bridge has one of its own. It comes to the broker after the first messages, and
the server goes away in between. Absent: AWS, whose rules tests/deploy runs.
"""

import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "roomtide"
DEVICES = ["plug", "plug2", "ht", "Attic:Probe_1", "shelly1pm-AB", "esp", "attic"]
MESSAGES = [
    ("tele/plug/SENSOR", {"Time": "2001-01-01T00:00:00", "ENERGY": {"Total": 6.294, "Today": 0.954, "Power": 2635}}),
    ("tele/plug/STATE", {"POWER": "ON", "Wifi": {"Signal": -63}}),
    ("tele/plug/LWT", "Online"),
    ("tele/plug2/SENSOR", {"SML": {"Meter_number": "0901"}, "Time": "2001-01-01T00:00:00"}),
    ("shellies/shelly1pm-AB/info", {"mac": "AB", "relays": [{"ison": True}], "meters": [{"power": 71.5, "total": 60}]}),
    ("shellies/shelly1pm-AB/relay/0", "on"),
    ("esp/sensor/office_temperature/state", "21.50"),
    ("esp/binary_sensor/door/state", "ON"),
    ("v3/home@ttn/devices/attic/up", {"end_device_ids": {"device_id": "attic"}, "uplink_message": {"decoded_payload": {"BatV": 3.05}}}),
    ("zigbee2mqtt/plug/power", "12.5"),
    ("ht/events/rpc", {"src": "shellyplusht-1", "method": "NotifyStatus", "params": {"temperature:0": {"tC": 21.4}}}),
    ("zigbee2mqtt/Attic/Probe 1", {"battery": 86, "humidity": 55.43, "voltage": 2975}),
    ("zigbee2mqtt/bridge/state", {"state": "online"}),
    ("zigbee2mqtt/Attic/Probe 1/availability", {"state": "online"}),
    ("zigbee2mqtt/odd", {"nothing": "known"}),
]
EXPECTED = {
    "plug": {"cumulative_kwh_p": Decimal("6.294"), "current_w": 2635, "on": 1, "signal_strength": -63},
    "shelly1pm-AB": {"on": 1, "current_w": Decimal("71.5"), "cumulative_kwh_p": Decimal("0.001")},
    "esp": {"office_temperature": Decimal("21.5"), "door": 1},
    "attic": {"battery_voltage": Decimal("3.05")},
    "ht": {"temperature": Decimal("21.4")},
    "Attic:Probe_1": {"battery": 86, "humidity": Decimal("55.43"), "voltage": Decimal("2.975")},
}


class Failed(Exception):
    """What was expected and what came."""


def main():
    missing = [program for program in ("mosquitto", "mosquitto_sub", "mosquitto_pub") if not found(program)]
    if missing:
        sys.exit(f"there is no {', '.join(missing)}; Debian's packages are mosquitto and mosquitto-clients")
    if not PROGRAM.exists():
        sys.exit("there is no program; build it with: cargo test --workspace --no-run")
    running = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            use(Path(folder), running)
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()


def use(folder, running):
    port, broker = free_port(), free_port()
    server = serve(folder, port, running)
    token = [create_token(folder, *words) for words in (["write", *(w for d in DEVICES for w in ("--device", d))], ["read"])]
    (folder / "mosquitto.conf").write_text(f"listener {broker} 127.0.0.1\nallow_anonymous true\n")
    running.append(subprocess.Popen([found("mosquitto"), "-c", folder / "mosquitto.conf"], stderr=subprocess.DEVNULL))
    until("mosquitto listens", lambda: listens(broker))
    env = os.environ | {"ROOMTIDE_URL": f"http://127.0.0.1:{port}", "ROOMTIDE_TOKEN": token[0]}
    with open(folder / "bridge.log", "w") as log:
        words = [sys.executable, ROOT / "docs" / "mosquitto" / "bridge.py", "-h", "127.0.0.1", "-p", str(broker)]
        running.append(subprocess.Popen(words, env=env, stderr=log))
    # A session begins when the bridge has come, and nobody tells: the first message is sent until it is through.
    publish(broker, "tele/plug2/SENSOR", {"ENERGY": {"Power": 1}})
    until("the bridge has come", lambda: again(broker, port, token[1]))
    for topic, payload in MESSAGES:
        publish(broker, topic, payload)
    until("all are stored", lambda: all(values(port, token[1], device) == EXPECTED[device] for device in EXPECTED))
    log = folder / "bridge.log"
    until("what is refused is told", lambda: "odd: 4" in log.read_text())
    until("what is not stored is told", lambda: "plug2: not stored: SML/Meter_number" in log.read_text())
    until("single values are told", lambda: log.read_text().count("output: json") == 1)
    say("Tasmota, Shelly, Zigbee2MQTT, ESPHome and LoRaWAN by way of a mosquitto; what is refused or not stored is told")

    server.terminate()
    server.wait()
    running.remove(server)
    publish(broker, "tele/plug/SENSOR", {"ENERGY": {"Power": 7}})
    until("the bridge tries again", lambda: "tries again" in log.read_text())
    serve(folder, port, running)
    until("what was sent meanwhile is stored", lambda: (values(port, token[1], "plug") or {}).get("current_w") == 7)
    say("a message that is sent while the server is away is stored when it is back")


def again(broker, port, token):
    publish(broker, "tele/plug2/SENSOR", {"ENERGY": {"Power": 1}})
    return values(port, token, "plug2")


def serve(folder, port, running):
    words = [PROGRAM, "serve", "--data-dir", folder / "data", "--port", str(port), "--auth", "--empty"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    running.append(process)
    until("the server listens", lambda: listens(port))
    return process


def create_token(folder, scope, *words):
    command = [PROGRAM, "token", "create", "--data-dir", folder / "data", "--quiet", "--scope", scope, *words]
    made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.search(r"rt_\S+", made).group()


def publish(port, topic, payload):
    text = payload if isinstance(payload, str) else json.dumps(payload)
    subprocess.run(["mosquitto_pub", "-h", "127.0.0.1", "-p", str(port), "-q", "1", "-t", topic, "-m", text], check=True)


def values(port, token, device):
    """The newest values of a device; none where there is no such device."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/devices/{device}/latest", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            metrics = json.load(response, parse_float=Decimal)["metrics"]
    except OSError:
        return None
    return {name: metric["value"] for name, metric in metrics.items()}


def found(program):
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


def free_port():
    """Below the ports that Linux gives to whoever asks for any: it is nobody else's a moment later, and does not answer itself."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until(what, is_so):
    end = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > end:
            raise Failed(f"not within a minute: {what}")
        time.sleep(0.2)


def say(text):
    print(f"ok  {text}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"FAILED  {failure}")
