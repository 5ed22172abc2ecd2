"""Databases of Home Assistant for the check of imports, written by Python's own SQLite in the schemas that Home Assistant
had, and the sums that they hold. Absent: MariaDB.

The statements are those that the recorder of Home Assistant 2024.3 makes (schema 42), with what earlier and later
schemas have instead, up to that of 2026.2 (53): https://github.com/home-assistant/core/blob/2024.3.3/homeassistant/components/recorder/db_schema.py
"""

import json
import random
import sqlite3
from datetime import datetime, timedelta, timezone
from decimal import Decimal

SCHEMAS = [25, 31, 38, 43, 49, 50, 53]
FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)
STATES_FROM = datetime(2026, 2, 19, tzinfo=timezone.utc)
LAST = datetime(2026, 3, 1, tzinfo=timezone.utc)
ATTRIBUTES = {
    "sensor.meter": {"unit_of_measurement": "kWh", "device_class": "energy", "state_class": "total_increasing", "friendly_name": "Zähler, \"Keller\""},
    "sensor.outside": {"unit_of_measurement": "°C", "device_class": "temperature", "state_class": "measurement", "friendly_name": "Outside"},
    "binary_sensor.door": {"device_class": "door", "friendly_name": "Door"},
}


def tables(schema):
    has_ts, has_meta = schema >= 31, schema >= 38
    entity = "entity_id CHAR(0), metadata_id INTEGER" if has_meta else "entity_id VARCHAR(255)"
    updated = "last_updated CHAR(0), last_updated_ts FLOAT" if has_ts else "last_updated DATETIME"
    start = "start CHAR(0), start_ts FLOAT" if has_ts else "start DATETIME"
    unit_class = "unit_class VARCHAR(255), " if schema >= 53 else ""
    mean_type = ", mean_type SMALLINT NOT NULL DEFAULT 0" if schema >= 49 else ""
    mean_weight = "mean_weight FLOAT, " if schema >= 49 else ""
    text = f"""
    CREATE TABLE schema_changes (change_id INTEGER NOT NULL PRIMARY KEY, schema_version INTEGER, changed DATETIME NOT NULL);
    CREATE TABLE state_attributes (attributes_id INTEGER NOT NULL PRIMARY KEY, hash BIGINT, shared_attrs TEXT);
    CREATE TABLE states (state_id INTEGER NOT NULL PRIMARY KEY, {entity}, state VARCHAR(255), attributes CHAR(0), {updated},
        old_state_id INTEGER, attributes_id INTEGER);
    CREATE TABLE statistics_meta (id INTEGER NOT NULL PRIMARY KEY, statistic_id VARCHAR(255), source VARCHAR(32),
        unit_of_measurement VARCHAR(255), {unit_class}has_mean BOOLEAN, has_sum BOOLEAN, name VARCHAR(255){mean_type});
    CREATE TABLE statistics (id INTEGER NOT NULL PRIMARY KEY, created FLOAT, metadata_id INTEGER, {start}, mean FLOAT,
        {mean_weight}min FLOAT, max FLOAT, last_reset FLOAT, state FLOAT, sum FLOAT);
    """
    return text + ("CREATE TABLE states_meta (metadata_id INTEGER NOT NULL PRIMARY KEY, entity_id VARCHAR(255));" if has_meta else "")


def truth(seed):
    """Values by entity, each a time and a decimal: hours until the states begin, then states."""
    chance = random.Random(seed)
    meter, outside, door = [], [], []
    reading, at = Decimal("812.250"), FIRST
    while at < LAST:
        is_hour = at < STATES_FROM
        step = timedelta(hours=1) if is_hour else timedelta(minutes=10)
        at += step
        reading += Decimal(chance.randrange(0, 900)) / 1000
        if at == FIRST + timedelta(days=20):
            reading = Decimal("0.125")  # a new meter
        if timedelta(days=30) < at - FIRST < timedelta(days=33):
            continue  # an outage
        if not is_hour and at == STATES_FROM:
            continue
        meter.append((at, reading))
        temperature = Decimal(chance.randrange(-100, 150)) / 10
        outside.append((at - step / 2 if is_hour else at, temperature))
        if not is_hour:
            door.append((at, Decimal(chance.randrange(2))))
    return {"sensor.meter": meter, "sensor.outside": outside, "binary_sensor.door": door}


def write(path, schema, values):
    """Writes the database and leaves it open, as Home Assistant does."""
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode = WAL;" + tables(schema))
    connection.execute("INSERT INTO schema_changes (schema_version, changed) VALUES (?, '2026-01-01')", (schema,))
    for number, (entity, rows) in enumerate(values.items(), start=1):
        connection.execute("INSERT INTO state_attributes VALUES (?, 0, ?)", (number, json.dumps(ATTRIBUTES[entity])))
        if schema >= 38:
            connection.execute("INSERT INTO states_meta VALUES (?, ?)", (number, entity))
        is_counter = entity == "sensor.meter"
        if entity != "binary_sensor.door":
            attributes = ATTRIBUTES[entity]
            columns = (number, entity, "recorder", attributes["unit_of_measurement"])
            columns += (attributes["device_class"],) if schema >= 53 else ()
            # With 49 the kind of a mean is new and stands beside the old column, which is empty later.
            columns += (None if schema >= 50 else not is_counter, is_counter, None)
            columns += (0 if is_counter else 1,) if schema >= 49 else ()
            connection.execute(f"INSERT INTO statistics_meta VALUES ({', '.join('?' * len(columns))})", columns)
        for at, value in rows:
            if at <= STATES_FROM:
                hour(connection, schema, number, is_counter, at, value)
            else:
                state(connection, schema, number, entity, at, value)
        state(connection, schema, number, entity, LAST - timedelta(minutes=1), "unavailable")
    connection.commit()
    return connection


def hour(connection, schema, number, is_counter, at, value):
    start = at - (timedelta(hours=1) if is_counter else timedelta(minutes=30))
    time = ("start_ts", start.timestamp()) if schema >= 31 else ("start", start.strftime("%Y-%m-%d %H:%M:%S.%f"))
    filled = ("state, sum", (float(value), 1e9)) if is_counter else ("mean, min, max", (float(value), -99, 99))
    marks = ", ".join("?" * (2 + len(filled[1])))
    connection.execute(f"INSERT INTO statistics (metadata_id, {time[0]}, {filled[0]}) VALUES ({marks})", (number, time[1], *filled[1]))


def state(connection, schema, number, entity, at, value):
    if entity == "binary_sensor.door" and value != "unavailable":
        value = "on" if value else "off"
    time = ("last_updated_ts", at.timestamp()) if schema >= 31 else ("last_updated", at.strftime("%Y-%m-%d %H:%M:%S.%f"))
    who = ("metadata_id", number) if schema >= 38 else ("entity_id", entity)
    connection.execute(
        f"INSERT INTO states ({who[0]}, {time[0]}, state, attributes_id) VALUES (?, ?, ?, ?)", (who[1], time[1], str(value), number))


def storage(folder):
    """Names and areas, as `.storage` has them."""
    place = folder / ".storage"
    place.mkdir()
    files = {
        "core.entity_registry": {"entities": [
            {"entity_id": "sensor.meter", "name": None, "original_name": "Meter", "area_id": "cellar", "device_id": None},
            {"entity_id": "sensor.outside", "name": None, "original_name": "Outside", "area_id": None, "device_id": "d1"}]},
        "core.device_registry": {"devices": [{"id": "d1", "area_id": "garden", "name": "Weather"}]},
        "core.area_registry": {"areas": [{"id": "cellar", "name": "Keller"}, {"id": "garden", "name": "Großer Garten"}]},
    }
    for name, data in files.items():
        (place / name).write_text(json.dumps({"version": 1, "key": name, "data": data}))
    return place


def months(values):
    """By entity and month: the energy of the meter, and count and sum of all others."""
    sums = {}
    for entity, rows in values.items():
        before = None
        for at, value in rows:
            if entity != "sensor.meter":
                count, total = sums.get((entity, at.month), (0, Decimal(0)))
                sums[entity, at.month] = (count + 1, total + value)
            elif before is not None:
                # The step's share of each month, by time; the steps of an outage are the only long ones.
                (began, earlier), size = before, value - before[1]
                if size < 0:
                    size = value
                for month in {began.month, (at - timedelta(microseconds=1)).month}:
                    low = max(began, datetime(2026, month, 1, tzinfo=timezone.utc))
                    high = min(at, datetime(2026, month + 1, 1, tzinfo=timezone.utc))
                    share = Decimal((high - low) // timedelta(seconds=1)) / Decimal((at - began) // timedelta(seconds=1))
                    count, total = sums.get((entity, month), (0, Decimal(0)))
                    sums[entity, month] = (count + 1, total + size * share)
            before = (at, value)
    return sums


def lines(values):
    """The states as the integration `influxdb` writes them."""
    texts = []
    for entity, rows in values.items():
        domain, name = entity.split(".")
        attributes = ATTRIBUTES[entity]
        measurement = attributes.get("unit_of_measurement", entity)
        strings = [(key, value) for key, value in attributes.items() if key != "unit_of_measurement"]
        for at, value in rows:
            fields = [f"value={float(value)!r}"] + [f"{key}_str={json.dumps(text, ensure_ascii=False)}" for key, text in strings]
            if domain == "binary_sensor":
                fields.append(f'state="{"on" if value else "off"}"')
            nanos = int(at.timestamp()) * 1_000_000_000
            texts.append(f"{measurement},domain={domain},entity_id={name} {','.join(fields)} {nanos}")
    return texts
