"""Writes with influxdb 5: ping, points with Basic credentials, then a line that is refused. Asks for the points with
and without `chunked`."""

import os
import time
from urllib.parse import urlparse

from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError

url, host = urlparse(os.environ["URL"]), os.environ["CLIENT_HOST"]
client = InfluxDBClient(url.hostname, url.port, "anybody", os.environ["TOKEN"], "sensors", path="/influx")
assert client.ping() == "1.8.10"
points = [{"measurement": "room", "tags": {"host": host}, "time": 1768147200 + 60 * n,
           "fields": {"temp": 20.5 + n, "ok": True}} for n in range(3)]
assert client.write_points(points, time_precision="s")
try:
    client.write([f"room,host={host}x temp=1", "bad line here x"], params={"db": "sensors"}, protocol="line")
except InfluxDBClientError as refused:
    print(refused)

reader = InfluxDBClient(url.hostname, url.port, "anybody", os.environ["READ_TOKEN"], "sensors", path="/influx")
hour = "time >= '2026-01-11T16:00:00Z' AND time < '2026-01-11T17:00:00Z'"
question = f"SELECT temp FROM room WHERE host = '{host}' AND {hour}"
whole = []
# A registry that is a second old may not have the device yet.
while not whole:
    time.sleep(0.1)
    whole = list(reader.query(question).get_points())
chunks = reader.query(question, chunked=True, chunk_size=2)
chunked = [point for chunk in chunks for point in chunk.get_points()]
assert [point["temp"] for point in chunked] == [20.5, 21.5, 22.5] and chunked == whole, chunked
