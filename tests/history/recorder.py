"""Writes a database by Home Assistant's own recorder, with its long-term statistics. Prints nothing.

    python recorder.py DIRECTORY

It needs Home Assistant: `check.py` makes an environment with one. States of eleven days are recorded, their hours
compiled, and the states of January purged, as Home Assistant does after ten days.
"""

import asyncio
import random
import sqlite3
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

FIRST = datetime(2026, 1, 28, tzinfo=timezone.utc)
FEBRUARY = datetime(2026, 2, 1, tzinfo=timezone.utc)
LAST = datetime(2026, 2, 4, tzinfo=timezone.utc)
ATTRIBUTES = {
    "sensor.meter": {"unit_of_measurement": "kWh", "device_class": "energy", "state_class": "total_increasing", "friendly_name": "Zähler"},
    "sensor.outside": {"unit_of_measurement": "°C", "device_class": "temperature", "state_class": "measurement"},
}


def states():
    """Times and texts by entity: each ten minutes, five past the first."""
    chance, at, meter = random.Random(12), FIRST + timedelta(minutes=5), 7_000.0
    rows = {entity: [] for entity in ATTRIBUTES}
    while at < LAST:
        meter += chance.randrange(0, 500) / 1000
        rows["sensor.meter"].append((at, f"{meter:.3f}"))
        rows["sensor.outside"].append((at, f"{chance.randrange(-100, 150) / 10}"))
        at += timedelta(minutes=10)
    return rows


async def record(folder):
    from homeassistant import config_entries, core, loader
    from homeassistant.components.recorder import get_instance
    from homeassistant.components.recorder.tasks import StatisticsTask
    from homeassistant.const import EVENT_STATE_CHANGED
    from homeassistant.helpers import area_registry, device_registry, entity, entity_registry, issue_registry, recorder, translation
    from homeassistant.setup import async_setup_component

    hass = core.HomeAssistant(str(folder))
    hass.config.skip_pip = True
    loader.async_setup(hass)
    entity.async_setup(hass)
    translation.async_setup(hass)
    hass.config_entries = config_entries.ConfigEntries(hass, {})
    await hass.config_entries.async_initialize()
    for registry in (area_registry, device_registry, entity_registry, issue_registry):
        await registry.async_load(hass)
    recorder.async_initialize_recorder(hass)
    settings = {"db_url": f"sqlite:///{folder / 'home-assistant_v2.db'}", "commit_interval": 1, "auto_purge": False}
    assert await async_setup_component(hass, "sensor", {"sensor": []})
    assert await async_setup_component(hass, "recorder", {"recorder": settings})
    await hass.async_start()
    await hass.async_block_till_done()
    instance = get_instance(hass)
    before = {}
    rows = states()
    for number in range(len(rows["sensor.meter"])):
        for name, of_entity in rows.items():
            at, text = of_entity[number]
            state = core.State(name, text, ATTRIBUTES[name], last_changed=at, last_updated=at)
            data = {"entity_id": name, "old_state": before.get(name), "new_state": state}
            hass.bus.async_fire(EVENT_STATE_CHANGED, data, time_fired=at)
            before[name] = state
        if number % 200 == 0:
            await hass.async_block_till_done()
            await instance.async_add_executor_job(instance.block_till_done)
    # The entities that there are now are those whose hours are compiled.
    for name, attributes in ATTRIBUTES.items():
        hass.states.async_set(name, rows[name][-1][1], attributes)
    await hass.async_block_till_done()
    await instance.async_add_executor_job(instance.block_till_done)
    at = FIRST
    while at < LAST:
        instance.queue_task(StatisticsTask(at, False))
        at += timedelta(minutes=5)
    await instance.async_add_executor_job(instance.block_till_done)
    await hass.async_stop(force=True)


def main():
    folder = Path(sys.argv[1])
    asyncio.run(record(folder))
    connection = sqlite3.connect(folder / "home-assistant_v2.db")
    # What a purge leaves, and without the states of the moment at which this ran.
    connection.execute("UPDATE states SET old_state_id = NULL")
    connection.execute("DELETE FROM states WHERE last_updated_ts < ? OR last_updated_ts >= ?", (FEBRUARY.timestamp(), LAST.timestamp()))
    connection.commit()
    connection.close()


if __name__ == "__main__":
    main()
