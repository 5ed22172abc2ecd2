"""Bills of three kinds of tariff, compared with SQL over the same readings. Shares no code with the program, and of the
oracle beside it only the home's readings: time zone, days and sums are those of SQLite, in whole numbers.

    python3 tests/cost/sql.py target/debug/roomtide
"""

import os
import sqlite3
import sys
import time
from datetime import timedelta

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle

# The days of one request: few enough that each part without a price is named.
DAYS = 4
METERS = [{"device": "meter"}, {"device": "roof"}]
FLAT = [
    {"name": "Energy", "price": 0.3017},
    {"name": "Feed-in", "per": "sold", "price": 0.0823},
    {"name": "VAT", "per": "percent", "price": 19},
]
ZONES = [
    {"name": "night", "hours": "22:00-06:00", "price": 0.11},
    {"name": "weekend", "days": "sat,sun", "price": 0.09},
    {"name": "peak", "months": "oct-mar", "days": "mon-fri", "hours": "17:15-19:00", "price": 0.41},
    {"name": "holiday", "days": "holiday", "price": -0.03},
]
HOLIDAYS = ["2025-03-21", "2025-04-06", "2025-10-26", "2025-11-03"]
TARIFFS = {
    "flat": {"lines": FLAT},
    "zones": {"days": {"holiday": HOLIDAYS}, "lines": [{"name": "Energy", "price": 0.2, "zones": ZONES}]},
    "hours": {"lines": [{"name": "Energy", "series": {"device": "spot", "metric": "price", "slot": "1h"}}]},
    "quarters": {"lines": [{"name": "Energy", "series": {"device": "spot", "metric": "price", "slot": "15m"}}]},
}

# What a counter had counted at the begin of each quarter, in units of 0.000000001: between two readings as far as time.
COUNTED = """
create table counted as
with beside as (
    select meters.meter, quarter,
           (select max(at) from reading where reading.meter = meters.meter and at <= quarter) as before,
           (select min(at) from reading where reading.meter = meters.meter and at > quarter) as behind
    from quarters, (select distinct meter from reading) meters)
select beside.meter, quarter, first.value + coalesce(
    (next.value - first.value) * (quarter - before) / (behind - before), 0) as value
from beside join reading first on first.meter = beside.meter and first.at = before
left join reading next on next.meter = beside.meter and next.at = behind
"""
# Each quarter with its energy, its time on the clock of the home, and its prices in units of 0.00001.
ENERGY = """
create table energy as
with parts as (
    select meter, quarter, lead(value) over (partition by meter order by quarter) - value as step,
           lead(quarter) over (partition by meter order by quarter) as until from counted),
held as (
    select quarter, quarter / 3600000 as hour,
           (select price from price where at >= quarter and at < quarter + 900000 order by at desc limit 1) as own,
           (select price from price where at >= quarter / 3600000 * 3600000 and at < quarter + 900000
            order by at desc limit 1) as of_hour
    from quarters)
select used.quarter, used.step as used, sold.step as sold, own, datetime(used.quarter / 1000, 'unixepoch', 'localtime') as clock,
       case when count(of_hour) over (partition by hour) = 4 then sum(of_hour) over (partition by hour) end as four
from parts used join parts sold on sold.quarter = used.quarter and sold.meter = 'roof' join held on held.quarter = used.quarter
where used.meter = 'meter' and used.until = used.quarter + 900000
"""
# The money of a quarter, and the unit in which it is counted.
ZONE = f"""used * case
    when date(clock) in ({', '.join(f"'{day}'" for day in HOLIDAYS)}) then -3
    when strftime('%m', clock) not between '04' and '09' and strftime('%w', clock) between '1' and '5'
        and time(clock) >= '17:15:00' and time(clock) < '19:00:00' then 41
    when strftime('%w', clock) in ('0', '6') then 9
    when time(clock) >= '22:00:00' or time(clock) < '06:00:00' then 11
    else 20 end"""
AMOUNTS = {
    "flat": ("(used * 3017 - sold * 823) * 119", 10**15),
    "zones": (ZONE, 10**11),
    "hours": ("used * coalesce(four, 0)", 4 * 10**14),
    "quarters": ("used * coalesce(own, 0)", 10**14),
}
WITHOUT_PRICE = {"hours": "four is null", "quarters": "own is null"}


def database(home):
    """The home's readings as tables."""
    base = sqlite3.connect(":memory:")
    base.execute("create table reading (meter text, at integer, value integer, primary key (meter, at))")
    base.execute("create table price (at integer primary key, price integer)")
    base.execute("create table quarters (quarter integer primary key)")
    for meter, readings in [("meter", home.used), ("roof", home.sold)]:
        rows = [(meter, at, int(value * 10**9)) for at, value in readings.items()]
        base.executemany("insert into reading values (?, ?, ?)", rows)
    base.executemany("insert into price values (?, ?)", [(at, int(value * 10**5)) for at, value in home.prices.items()])
    base.executemany("insert into quarters values (?)", [(quarter,) for quarter in home.quarters])
    for made in (COUNTED, ENERGY):
        base.execute(made)
    return base


def check(base, first, last, name):
    """Compares each day's energy and money. Returns the number of days."""
    amount, unit = AMOUNTS[name]
    days = "where date(clock) >= ? and date(clock) < ?"
    wanted = base.execute(f"select sum(used), sum(sold), sum({amount}) from energy {days} group by date(clock)", (first, last))
    answer = oracle.ask("GET", f"/cost?tariff={name}&from={first}&to={last}&every=1d")
    for row, (used, sold, money) in zip(answer["data"], wanted, strict=True):
        found = row["used"] * 10**9, row["sold"] * 10**9, row["amount"] * unit
        if found != (used, sold, money):
            raise SystemExit(f"{name}: {row} is not {used} {sold} {money / unit}")

    if name in WITHOUT_PRICE:
        assert answer["incomplete_count"] <= 50, "only so many are shown"
        query = f"select sum(used) from energy {days} and {WITHOUT_PRICE[name]}"
        wanted = base.execute(query, (first, last)).fetchone()[0] or 0
        found = sum(entry["kwh"] for entry in answer["incomplete"] if entry["what"] == "price")
        if found * 10**9 != wanted:
            raise SystemExit(f"{name}: {found} kWh have no price, and not {wanted / 10**9}")
    return len(answer["data"])


def main():
    os.environ["TZ"] = oracle.HOME
    time.tzset()
    home = oracle.Home(seed=5, spans=oracle.SHORT)
    base = database(home)
    with oracle.imported(os.path.abspath(sys.argv[1]), home):
        count = 0
        for name, tariff in TARIFFS.items():
            oracle.ask("PUT", f"/tariffs/{name}", {"name": name, "currency": "EUR", "meters": METERS} | tariff)
            for first, last in home.spans:
                for day in range(1, (last - first).days - DAYS, DAYS):
                    begin = first + timedelta(days=day)
                    count += check(base, begin, begin + timedelta(days=DAYS), name)
    print(f"{count} days cost what SQL says")


if __name__ == "__main__":
    main()
