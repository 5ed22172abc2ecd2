"""Bills of random tariffs, compared with fractions over the raw readings. Shares no code with the program.

    python3 tests/cost/oracle.py target/debug/roomtide [TARIFFS] [SEED] [--whole] [--kills]

Makes a home with readings and prices around the changes of the clock, or with --whole of ten months; with gaps and negative
prices; imports it; serves it; saves random tariffs, and compares each number of their bills: rows, lines, what is due, what
is missing. Parts of a range, cut at random times, are added up. Then readings and prices are corrected, and the bills are
compared again. With --kills, the import and then the server are killed while they work: the next bill is right at once, or
says that the rollups lack something.
"""

import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from bisect import bisect_right
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from functools import cache, cached_property
from zoneinfo import ZoneInfo

HOME = "Europe/Oslo"
QUARTER = 900_000
PORT = int(os.environ.get("ORACLE_PORT", "18490"))
BASE = f"http://127.0.0.1:{PORT}"
NINE = 10**9


def ms(moment):
    return round(moment.timestamp() * 1000)


def utc(millis):
    return datetime.fromtimestamp(millis / 1000, timezone.utc)


def text(millis):
    return utc(millis).strftime("%Y-%m-%dT%H:%M:%S.") + f"{millis % 1000:03}Z"


def floor9(value):
    return Fraction(value * NINE // 1, NINE)


def exact(value):
    return value


def rounded6(value):
    """Half away from zero to 6 decimals: a month's sum before it is rounded to those of the currency."""
    return Fraction(int(abs(value) * 10**6 + Fraction(1, 2)), 10**6) * (1 if value >= 0 else -1)


def nearest_quarter(millis):
    return (millis + QUARTER // 2) // QUARTER * QUARTER


class Counter:
    """Readings of a counter, as a function of what it had counted at a time."""

    def __init__(self, readings):
        self.times = sorted(readings)
        self.values = [readings[at] for at in self.times]
        self.found = {}

    def at(self, millis):
        if millis not in self.found:
            self.found[millis] = self.look_up(millis)
        return self.found[millis]

    def look_up(self, millis):
        place = bisect_right(self.times, millis) - 1
        if place < 0:
            return self.values[0]
        if place == len(self.times) - 1 or self.times[place] == millis:
            return self.values[place]
        begin, end = self.times[place], self.times[place + 1]
        step = self.values[place + 1] - self.values[place]
        return self.values[place] + floor9(step * (millis - begin) / (end - begin))

    def between(self, begin, end):
        return self.at(end) - self.at(begin)

    def estimated(self, begin, end):
        """What of a step was measured over more than a quarter of an hour beyond it: amounts with the times of the readings."""
        place = max(bisect_right(self.times, begin) - 1, 0)
        while place + 1 < len(self.times) and self.times[place] < end:
            first, last = self.times[place : place + 2]
            place += 1
            if last - first > QUARTER and not begin <= first < last <= end:
                yield self.between(max(first, begin), min(last, end)), first, last


# The days with readings: the whole time, or only around the changes of the clock.
WHOLE = [(date(2025, 2, 20), date(2025, 12, 17))]
SHORT = [(date(2025, 3, 14), date(2025, 4, 14)), (date(2025, 10, 14), date(2025, 11, 14))]


class Home:
    def __init__(self, seed, spans):
        self.random, self.spans = random.Random(seed), spans
        self.quarters = []
        for first, last in spans:
            begin, end = (ms(datetime(day.year, day.month, day.day, tzinfo=timezone.utc)) for day in (first, last))
            self.quarters += range(begin, end, QUARTER)
        self.used, self.sold = self.counter(0.4, 0.0), self.counter(0.2, 0.3)
        self.prices = {}
        for quarter in self.quarters:
            if self.random.random() > 0.004:
                self.prices[quarter + self.random.choice([0, 3_000, 61_500])] = Fraction(
                    self.random.randint(-3_000, 30_000), 100_000
                )
        # What is sent again within a quarter replaces the price.
        for at in self.random.sample(sorted(self.prices), len(self.prices) // 100):
            self.prices[at // QUARTER * QUARTER + 700_000] = Fraction(self.random.randint(1, 999), 1_000)

    @cached_property
    def counters(self):
        return Counter(self.used), Counter(self.sold)

    @cached_property
    def last_price(self):
        """The last price of each quarter."""
        return {at // QUARTER * QUARTER: self.prices[at] for at in sorted(self.prices)}

    def changed(self):
        """Forgets what was made of the readings before they were corrected."""
        for name in ("counters", "last_price"):
            self.__dict__.pop(name, None)

    def counter(self, most, idle):
        value, readings = Fraction(1_000), {}
        at, there = self.quarters[0], set(self.quarters)
        while at <= self.quarters[-1]:
            if at // QUARTER * QUARTER not in there:
                at = min(quarter for quarter in self.quarters if quarter > at)
            readings[at] = value
            step = self.random.choice([QUARTER] * 60 + [QUARTER * 9, QUARTER * 3, 1_234_567, 5_000])
            if self.random.random() > idle:
                value += Fraction(self.random.randint(1, round(most * 1_000)), 1_000)
            at += step
        return readings

    def lines(self):
        for device, metric, readings in [
            ("meter", "cumulative_kwh_p", self.used),
            ("roof", "cumulative_kwh_n", self.sold),
            ("spot", "price", self.prices),
        ]:
            for at, value in readings.items():
                yield reading(device, metric, at, value)


def ask(method, path, body=None, parse_float=Fraction):
    data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
    request = urllib.request.Request(BASE + path, data, {"content-type": "application/json"}, method=method)
    for attempts_left in reversed(range(10)):
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return json.loads(answer.read(), parse_float=parse_float)
        except urllib.error.HTTPError as error:
            # A server without optimisation on a busy machine may have no time left.
            if error.code != 503 or not attempts_left:
                raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}\n{body}") from error
            time.sleep(1)


MONTHS = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())
DAYS = tuple("mon tue wed thu fri sat sun".split())
ZONES = [None, None, None, "Etc/GMT-1", "Asia/Kolkata", "America/New_York", "Australia/Lord_Howe"]


def random_tariff(rng, name):
    def price():
        return round(rng.uniform(-0.1, 0.5), rng.randint(1, 6))

    def clock():
        return f"{rng.randint(0, 23):02}:{rng.choice(['00', '00', '30', '15']):0>2}"

    def span(words):
        return "-".join(rng.sample(words, 2)) if rng.random() < 0.7 else rng.choice(words)

    def zone(n):
        made = {"name": f"z{n}", "price": price()}
        if rng.random() < 0.4:
            made["months"] = span(MONTHS)
        if rng.random() < 0.5:
            made["days"] = ",".join({span(DAYS), rng.choice(["holiday", "red", span(DAYS)])})
        begin, end = clock(), rng.choice([clock(), "24:00"])
        if rng.random() < 0.7 and begin != end:
            made["hours"] = f"{begin}-{end}"
        return made

    def dates(count):
        return [str(date(2025, 1, 1) + timedelta(days=rng.randint(0, 364))) for _ in range(count)]

    def priced(per):
        kind = rng.choice(["flat", "zones", "tiers", "series"]) if per == "used" else rng.choice(["flat", "zones", "series"])
        if kind == "zones":
            return {"price": price(), "zones": [zone(n) for n in range(rng.randint(1, 4))]}
        if kind == "tiers":
            limits = sorted(rng.sample(range(5, 900), rng.randint(1, 3)))
            return {"tiers": [{"to": limit, "price": price()} for limit in limits] + [{"price": price()}]}
        if kind == "series":
            slot = rng.choice(["15m", "30m", "1h"])
            line = {"series": {"device": "spot", "metric": "price", "slot": slot}}
            if rng.random() < 0.5:
                line["series"]["holds"] = rng.choice(["15m", "30m", "1h"])
            if rng.random() < 0.5:
                line["price"] = price()
            if rng.random() < 0.3:
                line["times"] = rng.choice([0.01, 1.25, -1])
            return line
        return {"price": price()}

    lines = []
    for n in range(rng.randint(1, 7)):
        per = rng.choice(["used", "used", "used", "sold", "day", "month", "year", "percent"])
        froms = [None] if rng.random() < 0.4 else sorted(set(dates(rng.randint(1, 3))))
        for begin in froms:
            line = {"name": f"l{n}", "per": per}
            line |= priced(per) if per in ("used", "sold") else {"price": round(rng.uniform(-20, 40), 3)}
            if begin:
                line["from"] = begin
            if rng.random() < 0.2:
                line["to"] = str(date.fromisoformat(begin or "2025-05-05") + timedelta(days=rng.randint(1, 90)))
            if rng.random() < 0.15:
                line["round"] = "down"
            lines.append(line)
    tariff = {
        "name": name,
        "currency": rng.choice(["EUR", "JPY"]),
        "meters": [{"device": "meter"}, {"device": "roof"}],
        "days": {"holiday": dates(8), "red": dates(20)},
        "lines": lines,
    }
    if rng.random() < 0.2:
        tariff["meters"][0] = {"device": "meter", "metric": "cumulative_kwh_p", "factor": 0.75}
    if rng.random() < 0.2:
        tariff["day_begins"] = "06:00"
    if rng.random() < 0.3:
        tariff["round"] = "down"
    if zone_name := rng.choice(ZONES):
        tariff["tz"] = zone_name
    return tariff


@cache
def local_time(zone, at):
    return utc(at).astimezone(zone)


@cache
def in_words(text_of, words):
    found = set()
    for part in text_of.split(","):
        first, _, last = part.partition("-")
        place, end = words.index(first), words.index(last or first)
        found.add(place)
        while place != end:
            place = (place + 1) % len(words)
            found.add(place)
    return found


class Oracle:
    """The bill of one tariff."""

    def __init__(self, home, tariff):
        self.used, self.sold = home.counters
        self.factor = Fraction(str(tariff["meters"][0].get("factor", 1)))
        self.tariff, self.zone = tariff, ZoneInfo(tariff.get("tz", HOME))
        self.begins = timedelta(hours=int(tariff.get("day_begins", "00:00")[:2]))
        self.last_price = home.last_price
        self.names = []
        for line in tariff["lines"]:
            if line["name"] not in self.names:
                self.names.append(line["name"])
        self.slots, self.midnights, self.held, self.charges, self.split = {}, {}, {}, {}, {}

    def clock(self, at):
        return local_time(self.zone, at)

    def midnight(self, day):
        if day not in self.midnights:
            self.midnights[day] = ms(datetime(day.year, day.month, day.day, tzinfo=self.zone))
        return self.midnights[day]

    def holding(self, name, at):
        key = name, self.clock(at).date()
        if key not in self.held:
            self.held[key] = self.holding_on(*key)
        return self.held[key]

    def holding_on(self, name, day):
        mine = [line for line in self.tariff["lines"] if line["name"] == name]
        mine.sort(key=lambda line: line.get("from", "0000"))
        today, best = str(day), None
        for place, line in enumerate(mine):
            end = line.get("to") or (mine[place + 1]["from"] if place + 1 < len(mine) else "9999")
            if line.get("from", "0000") <= today < end:
                best = line
        return best

    def matching_zone(self, line, at):
        clock = self.clock(at).replace(tzinfo=None)
        day, best = clock - self.begins, None
        for zone in line["zones"]:
            if "months" in zone and day.month - 1 not in in_words(zone["months"], MONTHS):
                continue
            if "days" in zone:
                lists = self.tariff["days"]
                parts = zone["days"].split(",")
                named = any(str(day.date()) in lists[part] for part in parts if part in lists)
                weekdays = ",".join(part for part in parts if part not in lists)
                if not named and not (weekdays and day.weekday() in in_words(weekdays, DAYS)):
                    continue
            if "hours" in zone:
                begin, end = zone["hours"].split("-")
                now = clock.strftime("%H:%M")
                inside = begin <= now < end if begin < end else now >= begin or now < end
                if not inside:
                    continue
            best = zone
        return best

    def slot(self, at, length):
        """The quarters of the local slot of a quarter; each hour of the autumn change by itself."""
        minutes = {"15m": 15, "30m": 30, "1h": 60}[length]

        def shown(moment):
            clock = self.clock(moment)
            return clock.utcoffset(), clock.date(), (clock.hour * 60 + clock.minute) // minutes

        mine = shown(at)
        return [q for q in range(at - 3 * QUARTER, at + 4 * QUARTER, QUARTER) if shown(q) == mine]

    def price(self, line, at):
        series = line["series"]
        key = (series["slot"], series.get("holds", series["slot"]), at)
        if key not in self.slots:
            values = []
            for quarter in self.slot(at, key[0]):
                held = [q for q in self.slot(quarter, key[1]) if q <= quarter and q in self.last_price]
                values.append(self.last_price[held[-1]] if held else None)
            self.slots[key] = None if None in values else sum(values) / len(values)
        mean = self.slots[key]
        if mean is None:
            return None
        return mean * Fraction(str(line.get("times", 1))) + Fraction(str(line.get("price", 0)))

    def line_price(self, name, at):
        """What decides the price of a line in a quarter: with tiers, the line and the month."""
        line = self.holding(name, at)
        if line is None:
            return None
        if "tiers" in line:
            return line.get("from"), str(self.clock(at).date())[:7]
        if "series" in line:
            return self.price(line, at)
        zone = self.matching_zone(line, at) if "zones" in line else None
        return Fraction(str((zone or line)["price"]))

    def has_several_prices(self, per, begin, end):
        """Whether a price of what is used or sold, or a percentage, differs in some quarter between two readings."""
        key = per, begin, end
        if key not in self.split:
            first = {line["name"]: line["per"] for line in self.tariff["lines"]}
            names = [name for name in self.names if first[name] in (per, "percent")]
            quarters = range(nearest_quarter(begin), nearest_quarter(end), QUARTER)
            self.split[key] = len({tuple(self.line_price(name, at) for name in names) for at in quarters}) > 1
        return self.split[key]

    def spread(self, at, until, whole):
        """The energy of a step that has several prices; None if a reading is beyond the bill, where only some prices are seen."""
        total = Fraction(0)
        for per, counter, factor in (("used", self.used, self.factor), ("sold", self.sold, 1)):
            for amount, first, last in counter.estimated(at, until):
                if first < whole[0] or last > whole[1]:
                    return None
                if self.has_several_prices(per, first, last):
                    total += amount * factor
        return total

    def accrued(self, per, price, first, days, at, cut):
        """What has accrued since the begin of a month or year."""
        today = self.clock(at).date()
        whole = (today - first).days

        def of_days(count):
            if per == "day":
                return price * count
            return price if count == days else cut(price * count / days)

        begin, end = self.midnight(today), self.midnight(today + timedelta(days=1))
        if at == begin:
            return of_days(whole)
        day = of_days(whole + 1) - of_days(whole)
        return of_days(whole) + cut(day * (at - begin) / (end - begin))

    def standing(self, per, price, begin, end, cut):
        today = self.clock(begin).date()
        first = today.replace(day=1)
        after = (first + timedelta(days=32)).replace(day=1)
        if per == "year":
            first, after = today.replace(month=1, day=1), date(today.year + 1, 1, 1)
        days = (after - first).days

        def until(at):
            key = per, price, first, at, cut
            if key not in self.charges:
                self.charges[key] = self.accrued(per, price, first, days, at, cut)
            return self.charges[key]

        return until(end) - until(begin)

    def count(self, begin, end):
        month = self.clock(begin).date().replace(day=1)
        return self.used.between(self.midnight(month), begin) * self.factor

    @staticmethod
    def tiers(line, before, after):
        parts, begin = [], Fraction(0)
        for place, tier in enumerate(line["tiers"]):
            end = Fraction(str(tier["to"])) if "to" in tier else None

            def inside(count):
                if end is not None and count >= end:
                    return end - begin
                return count - begin if place == 0 or count > begin else Fraction(0)

            name = f"{place and line['tiers'][place - 1]['to']}-{tier.get('to', '')}"
            parts.append((name, inside(after) - inside(before), Fraction(str(tier["price"]))))
            begin = end
        return parts

    def bill(self, rows):
        sums = {}
        result = {"rows": [], "lines": {}, "price": Fraction(0), "tariff": Fraction(0), "spread": Fraction(0)}
        months, whole = {}, (rows[0][0], rows[-1][1])
        for begin, end in rows:
            row = {"used": Fraction(0), "sold": Fraction(0), "amount": Fraction(0)}
            at = begin
            while at < end:
                until = min(end, at // QUARTER * QUARTER + QUARTER)
                self.step(at, until, row, result, months)
                if result["spread"] is not None:
                    spread = self.spread(at, until, whole)
                    result["spread"] = None if spread is None else result["spread"] + spread
                at = until
            result["rows"].append(row)
        result["due"] = self.due(months)
        return result

    def step(self, at, until, row, result, months):
        used = self.used.between(at, until) * self.factor
        sold = self.sold.between(at, until)
        row["used"] += used
        row["sold"] += sold
        month = str(self.clock(at).date())[:7]
        sums = months.setdefault(month, {"together": Fraction(0)})
        # What is owed is above without the loss of the digits that are not shown.
        above, owed, priced = Fraction(0), Fraction(0), False
        for name in self.names:
            line = self.holding(name, at)
            if line is None:
                continue
            per = line["per"]
            priced |= per == "used"
            quantity = sold if per == "sold" else used
            if "zones" in line:
                zone = self.matching_zone(line, at // QUARTER * QUARTER)
                parts = [(zone and zone["name"], quantity, Fraction(str((zone or line)["price"])))]
            elif "tiers" in line:
                before = self.count(at, until)
                parts = self.tiers(line, before, before + used)
            elif "series" in line:
                price = self.price(line, at // QUARTER * QUARTER)
                if price is None and quantity:
                    result["price"] += quantity
                parts = [(None, quantity, price or Fraction(0))]
            elif per == "percent":
                parts = [(None, Fraction(0), None)]
            elif per in ("used", "sold"):
                parts = [(None, quantity, Fraction(str(line["price"])))]
            else:
                parts = [(None, Fraction(0), None)]
            for zone, quantity, price in parts:
                written = Fraction(str(line.get("price", 0)))
                if per == "percent":
                    amount, to_pay = above * written / 100, owed * written / 100
                elif price is None:
                    amount, to_pay = (self.standing(per, written, at, until, cut) for cut in (floor9, exact))
                else:
                    amount = to_pay = quantity * price * (-1 if per == "sold" else 1)
                above += amount
                owed += to_pay
                row["amount"] += amount
                whole = result["lines"].setdefault((name, zone), [Fraction(0), Fraction(0)])
                whole[0] += quantity
                whole[1] += amount
                key = name if line.get("round") else "together"
                sums[key] = sums.get(key, Fraction(0)) + to_pay
        if not priced:
            result["tariff"] += used

    def due(self, months):
        unit = 1 if self.tariff["currency"] == "JPY" else 100
        total = Fraction(0)
        for sums in months.values():
            value = rounded6(sums["together"])
            for name, amount in sums.items():
                if name != "together":
                    value += Fraction(int(rounded6(amount) * unit), unit)
            whole = value * unit
            if self.tariff.get("round") == "down":
                whole = int(whole)
            else:
                whole = int(abs(whole) + Fraction(1, 2)) * (1 if whole >= 0 else -1)
            total += Fraction(whole, unit)
        return total


def compare(tariff, query, answer, expected):
    def fail(what, got, wanted):
        print(json.dumps(tariff, indent=1))
        raise SystemExit(f"{query}: {what} is {got} ({float(got)}), expected {wanted} ({float(wanted)})")

    def same(what, got, wanted):
        if Fraction(got or 0) != wanted:
            fail(what, Fraction(got or 0), wanted)

    rows = [row for row in answer["data"] if row["tariff"] == tariff["name"]]
    for row, wanted in zip(rows, expected["rows"], strict=True):
        for member in ("used", "sold", "amount"):
            same(f"{member} of {row['timestamp']}", row.get(member), wanted[member])
    [bill] = [bill for bill in answer["bills"] if bill["tariff"] == tariff["name"]]
    shown = {(line["name"], line.get("zone")): line for line in bill["lines"]}
    for key, (quantity, amount) in expected["lines"].items():
        line = shown.pop(key, {"quantity": 0, "amount": 0})
        if line.get("per") in ("used", "sold"):
            same(f"quantity of {key}", line.get("quantity"), quantity)
        same(f"amount of {key}", line["amount"], amount)
    for key, line in shown.items():
        same(f"amount of {key}", line["amount"], Fraction(0))
    if "due" in bill:
        same("due", Fraction(bill["due"]), expected["due"])
    if answer["incomplete_count"] <= 50:
        for what in ("price", "tariff", "spread"):
            if expected[what] is None:
                continue
            entries = [entry for entry in answer["incomplete"] if entry["tariff"] == tariff["name"]]
            told = [entry["kwh"] for entry in entries if entry["what"] == what]
            same(f"kWh without {what}", sum(map(Fraction, told)), expected[what])


def random_query(rng, home):
    first, last = rng.choice(home.spans)
    days = (last - first).days
    kind = rng.choice(["total", "1d", "1d", "1h", "6h", "1mo", "month", "1w"])
    day = first + timedelta(days=rng.randint(2, max(days - 12, 3)))
    if kind == "total":
        begin = rng.choice(home.quarters[:-2_000]) + rng.randint(0, QUARTER)
        return f"from={text(begin)}&to={text(begin + rng.randint(1, 15 * 86_400_000))}"
    if kind in ("month", "1mo"):
        day = day.replace(day=1)
        after = (day + timedelta(days=32 if kind == "month" else 70)).replace(day=1)
        every = "" if kind == "month" else "&every=1mo"
        return f"from={day}&to={after}{every}"
    length = {"1h": 2, "6h": 6, "1d": 20, "1w": 30}[kind]
    return f"from={day}&to={day + timedelta(days=length)}&every={kind}"


def whole_range(home):
    return f"from={home.spans[0][0]}&to={home.spans[-1][1]}&every=1mo"


def rows_of(answer):
    starts = sorted({ms(datetime.fromisoformat(row["timestamp"].replace("Z", "+00:00"))) for row in answer["data"]})
    end = ms(datetime.fromisoformat(answer["to"].replace("Z", "+00:00")))
    return list(zip(starts, starts[1:] + [end]))


def ask_bills(tariffs, query):
    return ask("GET", f"/cost?tariff={','.join(tariff['name'] for tariff in tariffs)}&{query}")


def check_bills(home, tariffs, query):
    """Compares the bills of tariffs with the same meters. Returns the number of rows."""
    answer = ask_bills(tariffs, query)
    for tariff in tariffs:
        compare(tariff, query, answer, Oracle(home, tariff).bill(rows_of(answer)))
    return len(answer["data"])


def check_partition(rng, home, tariffs):
    """Whether the parts of a range, cut at random times, add up to the whole."""
    begin = rng.choice(home.quarters[:-3_000]) + rng.randint(0, QUARTER)
    edges = sorted({begin, *(begin + rng.randint(1, 25 * 86_400_000) for _ in range(rng.randint(2, 5)))})

    def sums(edges):
        found = {}
        for start, end in zip(edges, edges[1:]):
            for bill in ask_bills(tariffs, f"from={text(start)}&to={text(end)}")["bills"]:
                parts = [(None, None, member, bill.get(member)) for member in ("used", "sold", "amount")]
                for line in bill["lines"]:
                    name = line["name"], line.get("zone")
                    parts += [(*name, member, line.get(member)) for member in ("quantity", "amount")]
                for *key, value in parts:
                    key = bill["tariff"], *key
                    found[key] = found.get(key, 0) + (value or 0)
        return {key: value for key, value in found.items() if value}

    parts, whole = sums(edges), sums([edges[0], edges[-1]])
    if parts != whole:
        differing = [(key, parts.get(key), whole.get(key)) for key in parts | whole if parts.get(key) != whole.get(key)]
        print(json.dumps(tariffs, indent=1))
        raise SystemExit(f"parts at {[text(edge) for edge in edges]} do not add up: {differing}")


def random_tariffs(rng):
    """Tariffs that one request may compare."""
    tariffs = [random_tariff(rng, f"t{number}") for number in range(5)]
    for tariff in tariffs:
        tariff |= {member: tariffs[0][member] for member in ("meters", "currency")}
        ask("PUT", f"/tariffs/{tariff['name']}", tariff)
    return tariffs


def check(rng, home, count):
    rows, billed = 0, 0
    for number in range(-(-count // 5)):
        tariffs = random_tariffs(rng)
        rows += check_bills(home, tariffs, random_query(rng, home))
        if number % 4 == 0:
            rows += check_bills(home, tariffs[:1], whole_range(home))
            check_partition(rng, home, tariffs)
        billed += len(tariffs)
        if number % 4 == 3:
            print(f"{billed} tariffs, {rows} rows", flush=True)


def settled():
    begin = time.monotonic()
    for _ in range(600):
        answer = ask("GET", "/cost?tariff=t0&from=2025-03-01&to=2025-12-01&every=1mo")
        if "rollups_lack" not in answer:
            print(f"the rollups have all after {time.monotonic() - begin:.0f} s", flush=True)
            return
        time.sleep(1)
    raise SystemExit("the rollups do not follow")


def reading(device, metric, at, value):
    return {"device_id": device, "room": "hall", "timestamp": text(at), metric: float(value)}


def late_reading(rng, home):
    at = rng.choice(sorted(home.used)[100:-100])
    following = home.used[min(t for t in home.used if t > at)]
    home.used[at + 1_000] = (home.used[at] + following) / 2
    return "POST", "/readings", [reading("meter", "cumulative_kwh_p", at + 1_000, home.used[at + 1_000])]


def changed_price(rng, home):
    at = rng.choice(sorted(home.prices))
    home.prices[at] = Fraction(rng.randint(-100, 900), 1_000)
    return "POST", "/readings", [reading("spot", "price", at, home.prices[at])]


def doubled_readings(rng, home):
    times = rng.sample(sorted(home.used), 20)
    return "POST", "/readings", [reading("meter", "cumulative_kwh_p", at, home.used[at]) for at in times]


def deleted(device, readings):
    def correction(rng, home):
        at = rng.choice(sorted(readings(home))[100:-100])
        del readings(home)[at]
        return "DELETE", f"/devices/{device}/readings?from={text(at)}&to={text(at + 1)}", None

    return correction


def another_device(rng, home):
    """Changes no bill: the device is no meter."""
    at = rng.choice(sorted(home.used))
    return "POST", "/readings", [reading("other", "cumulative_kwh_p", at, rng.randint(1, 9))]


CORRECTIONS = [
    another_device,
    late_reading,
    changed_price,
    changed_price,
    doubled_readings,
    deleted("spot", lambda home: home.prices),
    deleted("meter", lambda home: home.used),
]


def correct(rng, home):
    """Late readings and prices, corrected ones, repeated ones, and deleted ones."""
    for _ in range(12):
        for correction in CORRECTIONS:
            ask(*correction(rng, home))
    home.changed()


class Server:
    """A program that serves a data directory, and can be killed."""

    def __init__(self, program, *options):
        self.command = [program, "serve", "--port", str(PORT), *options]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                with urllib.request.urlopen(BASE + "/health", timeout=60):
                    return
            except OSError:
                time.sleep(0.5)
        raise SystemExit("the server does not answer")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def kill_after(self, seconds):
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        return timer

    def until_stored(self, request):
        """Sends a request once more if the server dies of it. Returns whether it died."""
        try:
            ask(*request)
            return False
        except (OSError, http.client.HTTPException):
            self.process.wait()
            self.start()
            ask(*request)
            return True


@contextmanager
def served(program, *options):
    server = Server(program, *options)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def imported(program, home, kills=0):
    """Serves a home's readings. The import is killed as often as told, and begins again."""
    with tempfile.TemporaryDirectory() as folder:
        data, backup = os.path.join(folder, "data"), os.path.join(folder, "home.ndjson")
        with open(backup, "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in home.lines())
        options = ["--data-dir", data, "--empty", "--time-zone", HOME]
        with served(program, *options):
            pass
        for _ in range(kills):
            importing = subprocess.Popen([program, "import", backup, "--data-dir", data, "--yes"])
            time.sleep(home.random.uniform(0.5, 4))
            importing.kill()
            importing.wait()
        subprocess.run([program, "import", backup, "--data-dir", data, "--yes"], check=True)
        with served(program, *options) as server:
            yield server


def check_killed(rng, home, server, kills):
    """Kills the server while it stores corrections and tariffs. Each bill is right at once, or says that rollups lack
    something, and soon is right."""
    at_once = 0
    for number in range(kills):
        timer, has_died = server.kill_after(rng.uniform(0.05, 1.5)), False
        while not has_died:
            tariff = random_tariff(rng, "t0")
            for request in [*(correction(rng, home) for correction in CORRECTIONS), ("PUT", "/tariffs/t0", tariff)]:
                has_died |= server.until_stored(request)
            home.changed()
        timer.join()
        query = random_query(rng, home)
        if "rollups_lack" not in ask_bills([tariff], query):
            at_once += 1
            check_bills(home, [tariff], query)
        elif number % 4 == 3:
            settled()
            check_bills(home, [tariff], query)
    print(f"killed {kills} times; {at_once} of the next bills were right at once, the others said what they lacked", flush=True)


def main():
    program = os.path.abspath(sys.argv[1])
    numbers = [int(word) for word in sys.argv[2:] if word.isdigit()]
    count, seed = (numbers + [100, 1][len(numbers):])[:2]
    home, rng = Home(seed, WHOLE if "--whole" in sys.argv else SHORT), random.Random(seed)
    kills = 20 if "--kills" in sys.argv else 0
    with imported(program, home, kills // 5) as server:
        check(rng, home, count)
        if kills:
            check_killed(rng, home, server, kills)
        correct(rng, home)
        settled()
        check(rng, home, max(count // 4, 10))
    print("every bill is that of the fractions")


if __name__ == "__main__":
    main()
