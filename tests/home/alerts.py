"""A freezer that warms and cools while the server is killed and a receiver of its messages fails.

    python3 tests/home/alerts.py [ROUNDS] [SEED]

In each round a reading above the limit and one below it are stored, with SIGKILL at a random moment before, between or
after them. There are two receivers: one answers always, the other refuses some messages and answers some too late. At
the end each reading above the limit is an episode of its own, and the first receiver was told when it began and when it
ended, or once for both. The second one may lack what a later message has made old, but has the last one. Nothing else
was told, and a message that came twice has the id that it had. Takes two minutes and some seconds a round. Absent:
rules whose state ends by the clock, which the models in Rust have.
"""

import json
import random
import re
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from check import Failed
from provisioned import Server

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
RULE = {"name": "Freezer warm", "device": "freezer", "metric": "temperature", "above": -12, "clear": -15}
WARM, COLD = -5, -18
# In its first minute a rule is judged by the minute alone.
RULE_IS_NEW = 65
# After the last round an attempt that failed is made again, after at most two minutes of pause.
REST = 300


def guides_check():
    """The check of a signature that docs/guide/channels.md shows, as it stands there."""
    guide = Path(__file__).resolve().parents[2] / "docs/guide/channels.md"
    (block,) = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    names = {}
    exec(block, names)
    return names["is_from_roomtide"]


class Receiver:
    """A webhook; one that fails refuses a fifth of its requests, and answers a tenth later than anybody waits."""

    def __init__(self, chance, fails):
        self.bodies, self.unsigned, self.lock = [], [], threading.Lock()
        is_from_roomtide = guides_check()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler):
                text = handler.rfile.read(int(handler.headers["content-length"]))
                body = json.loads(text)
                with self.lock:
                    if not is_from_roomtide(KEY, handler.headers, text):
                        self.unsigned.append(body)
                    luck = chance.random() if fails else 1
                    refused = luck < 0.2
                    if not refused:
                        self.bodies.append(body)
                if 0.2 <= luck < 0.3:
                    time.sleep(12)
                try:
                    handler.send_response(503 if refused else 204)
                    handler.end_headers()
                except OSError:
                    pass  # the server was killed, or has not waited

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts"

    def messages(self):
        with self.lock:
            return [it for body in self.bodies for it in body["messages"]]


class House:
    """The server, killed and started again on the same data."""

    def __init__(self, data):
        self.data = data
        self.server = Server(data)

    def kill(self):
        self.server.process.kill()
        self.server.process.wait()
        self.server = Server(self.data)

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def store(self, temperature, at):
        """Until it is acknowledged, as a device does that keeps what was not."""
        reading = {"device_id": "freezer", "timestamp": at, "temperature": temperature}
        for _ in range(20):
            try:
                return self.ask("POST", "/readings", reading)
            except OSError:
                time.sleep(0.2)
        raise Failed(f"not stored: {reading}")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 26)
    receivers = [Receiver(random.Random(chance.random()), fails) for fails in (False, True)]
    with tempfile.TemporaryDirectory() as folder:
        house = House(Path(folder) / "data")
        try:
            episodes, kills = use(house, receivers, rounds, chance)
            told = check(house, receivers, episodes)
        finally:
            house.server.stop()
    print(f"alerts: {rounds} episodes, {kills} kills: {told}")


def use(house, receivers, rounds, chance):
    """When each episode began and ended, and the number of kills."""
    for name, receiver in zip(("good", "bad"), receivers):
        channel = {"kind": "webhook", "name": name, "address": receiver.url, "key": KEY}
        house.ask("PUT", f"/channels/{name}", channel)
    house.store(COLD, now())
    house.ask("PUT", "/alerts/freezer", RULE)
    time.sleep(RULE_IS_NEW)
    episodes, kills = [], 0
    for _ in range(rounds):
        times = []
        for temperature in (WARM, COLD):
            times.append(now())
            if chance.random() < 0.4:
                # The answer is not waited for: the kill comes while it is stored, judged or told.
                threading.Thread(target=attempt, args=(house.server.url, temperature, times[-1])).start()
                time.sleep(chance.random() * 0.5)
                house.kill()
                kills += 1
            house.store(temperature, times[-1])
            time.sleep(chance.random() * 3)
            if chance.random() < 0.2:
                house.kill()
                kills += 1
        episodes.append(tuple(times))
    return episodes, kills


def attempt(url, temperature, at):
    body = json.dumps({"device_id": "freezer", "timestamp": at, "temperature": temperature}).encode()
    request = urllib.request.Request(url + "/readings", body, {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=5).close()
    except OSError:
        pass  # killed


def now():
    """The time, in milliseconds; no two are the same."""
    time.sleep(0.002)
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check(house, receivers, episodes):
    """What was told, in words; fails where it is not what happened."""
    good, bad = receivers
    deadline = time.monotonic() + REST
    while time.monotonic() < deadline and (lacks(good.messages(), episodes) or not has_last(bad.messages(), episodes)):
        time.sleep(2)
    history = house.ask("GET", "/alerts/freezer/history?limit=1000")["data"]
    if lacking := lacks(history, episodes):
        raise Failed(f"not decided: {lacking}; decided: {shown(history)}")
    if lacking := lacks(good.messages(), episodes):
        raise Failed(f"not told: {lacking}; told: {shown(good.messages())}")
    if not has_last(bad.messages(), episodes):
        raise Failed(f"the end of the last episode is not told to who fails: {shown(bad.messages())}")
    if unsigned := good.unsigned + bad.unsigned:
        raise Failed(f"the guide's check refuses these: {unsigned}")
    figures = [figure(receiver.messages(), episodes) for receiver in receivers]
    rules = house.ask("GET", "/alerts")["data"]
    states = [state["phase"] for rule in rules for state in rule["states"]]
    if states != ["normal"]:
        raise Failed(f"the states at the end: {states}")
    return f"told {figures[0]}; to who fails {figures[1]}"


def figure(messages, episodes):
    begins = [begin for begin, _ in episodes]
    for message in messages:
        if message["since"] not in begins:
            raise Failed(f"told, and never happened: {message}")
    of_ids = {message["id"]: (message["since"], message["news"]) for message in messages}
    twice = {it: count for it, count in Counter(of_ids.values()).items() if count > 1}
    if twice:
        raise Failed(f"told twice, with two ids: {twice}")
    news = Counter(news for _, news in of_ids.values())
    return f"{dict(news)}, {len(messages) - len(of_ids)} of them sent again"


def lacks(messages, episodes):
    """The episodes of which the begin or the end is not told."""
    told = {(message["since"], message["news"]) for message in messages}
    return [begin for begin, _ in episodes if not ((begin, "passed") in told or {(begin, "fired"), (begin, "recovered")} <= told)]


def has_last(messages, episodes):
    last = episodes[-1][0]
    return any(message["since"] == last and message["news"] in ("recovered", "passed") for message in messages)


def shown(messages):
    return sorted({(message["since"], message["news"]) for message in messages})


if __name__ == "__main__":
    main()
