"""Bills of random tariffs, compared with fractions over the raw readings. Shares no code with the program.

    python3 tests/cost/oracle.py target/debug/roomtide [TARIFFS] [SEED] [--whole]

Makes a home with readings and prices around the changes of the clock, or of the year; with gaps, negative prices and both changes of the clock; imports it;
serves it; saves random tariffs, and compares each number of their bills: rows, lines, what is due, what is missing. Then
readings and prices are corrected, and the bills are compared again.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from bisect import bisect_right
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from functools import cache
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


class Counter:
    """Readings of a counter, as a function of what it had counted at a time."""

    def __init__(self, readings):
        self.times = sorted(readings)
        self.values = [readings[at] for at in self.times]

    def at(self, millis):
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
        for metric, readings in [("cumulative_kwh_p", self.used), ("cumulative_kwh_n", self.sold)]:
            for at, value in readings.items():
                device = "meter" if metric.endswith("p") else "roof"
                yield {"device_id": device, "room": "hall", "timestamp": text(at), metric: float(value)}
        for at, value in self.prices.items():
            yield {"device_id": "spot", "room": "hall", "timestamp": text(at), "price": float(value)}


def ask(method, path, body=None, parse_float=Fraction):
    data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
    request = urllib.request.Request(BASE + path, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.loads(answer.read(), parse_float=parse_float)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}\n{body}") from error


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
        self.used, self.sold = Counter(home.used), Counter(home.sold)
        self.factor = Fraction(str(tariff["meters"][0].get("factor", 1)))
        self.tariff, self.zone = tariff, ZoneInfo(tariff.get("tz", HOME))
        self.begins = timedelta(hours=int(tariff.get("day_begins", "00:00")[:2]))
        self.last_price = {}
        for at in sorted(home.prices):
            self.last_price[at // QUARTER * QUARTER] = home.prices[at]
        self.names = []
        for line in tariff["lines"]:
            if line["name"] not in self.names:
                self.names.append(line["name"])
        self.slots, self.clocks, self.midnights, self.held, self.charges = {}, {}, {}, {}, {}

    def clock(self, at):
        """The local time."""
        if at not in self.clocks:
            self.clocks[at] = utc(at).astimezone(self.zone)
        return self.clocks[at]

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

    def accrued(self, per, price, first, days, at):
        """What has accrued since the begin of a month or year."""
        today = self.clock(at).date()
        whole = (today - first).days

        def of_days(count):
            if per == "day":
                return price * count
            return price if count == days else floor9(price * count / days)

        begin, end = self.midnight(today), self.midnight(today + timedelta(days=1))
        if at == begin:
            return of_days(whole)
        day = of_days(whole + 1) - of_days(whole)
        return of_days(whole) + floor9(day * (at - begin) / (end - begin))

    def standing(self, per, price, begin, end):
        today = self.clock(begin).date()
        first = today.replace(day=1)
        after = (first + timedelta(days=32)).replace(day=1)
        if per == "year":
            first, after = today.replace(month=1, day=1), date(today.year + 1, 1, 1)
        days = (after - first).days

        def until(at):
            key = per, price, first, at
            if key not in self.charges:
                self.charges[key] = self.accrued(per, price, first, days, at)
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
        result = {"rows": [], "lines": {}, "price": Fraction(0), "tariff": Fraction(0)}
        months = {}
        for begin, end in rows:
            row = {"used": Fraction(0), "sold": Fraction(0), "amount": Fraction(0)}
            at = begin
            while at < end:
                until = min(end, at // QUARTER * QUARTER + QUARTER)
                self.step(at, until, row, result, months)
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
        above, priced = Fraction(0), False
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
                if per == "percent":
                    amount = above * Fraction(str(line["price"])) / 100
                elif price is None:
                    amount = self.standing(per, Fraction(str(line["price"])), at, until)
                else:
                    amount = quantity * price * (-1 if per == "sold" else 1)
                above += amount
                row["amount"] += amount
                whole = result["lines"].setdefault((name, zone), [Fraction(0), Fraction(0)])
                whole[0] += quantity
                whole[1] += amount
                key = name if line.get("round") else "together"
                sums[key] = sums.get(key, Fraction(0)) + amount
        if not priced:
            result["tariff"] += used

    def due(self, months):
        unit = 1 if self.tariff["currency"] == "JPY" else 100
        total = Fraction(0)
        for sums in months.values():
            value = sums["together"]
            for name, amount in sums.items():
                if name != "together":
                    value += Fraction(int(amount * unit), unit)
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
        # A mean of three quarters and a bill by thousands of digits are rounded to 15 digits; all else is exact.
        if abs(Fraction(got or 0) - wanted) > Fraction(1, 10**11):
            fail(what, Fraction(got or 0), wanted)

    for row, wanted in zip(answer["data"], expected["rows"], strict=True):
        for member in ("used", "sold", "amount"):
            same(f"{member} of {row['timestamp']}", row.get(member), wanted[member])
    bill = answer["bills"][0]
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
        for what in ("price", "tariff"):
            told = [entry["kwh"] for entry in answer["incomplete"] if entry["what"] == what]
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


def check(rng, home, count):
    digits = 0
    for number in range(count):
        tariff = random_tariff(rng, f"T {number}")
        ask("PUT", "/tariffs/t", tariff)
        query = random_query(rng, home)
        answer = ask("GET", f"/cost?tariff=t&{query}")
        starts = [ms(datetime.fromisoformat(row["timestamp"].replace("Z", "+00:00"))) for row in answer["data"]]
        end = ms(datetime.fromisoformat(answer["to"].replace("Z", "+00:00")))
        rows = list(zip(starts, starts[1:] + [end]))
        compare(tariff, query, answer, Oracle(home, tariff).bill(rows))
        digits += len(rows)
        if number % 20 == 19:
            print(f"{number + 1} tariffs, {digits} rows", flush=True)


def settled():
    for _ in range(600):
        answer = ask("GET", "/cost?tariff=t&from=2025-03-01&to=2025-12-01&every=1mo")
        if "rollups_lack" not in answer:
            return
        time.sleep(1)
    raise SystemExit("the rollups do not follow")


def correct(rng, home):
    """Late readings and prices, corrected ones, and deleted ones."""
    changed = []
    for at in rng.sample(sorted(home.used)[100:-100], 20):
        following = home.used[min(t for t in home.used if t > at)]
        home.used[at + 1_000] = (home.used[at] + following) / 2
        changed.append({"device_id": "meter", "room": "hall", "timestamp": text(at + 1_000), "cumulative_kwh_p": float(home.used[at + 1_000])})
    for at in rng.sample(sorted(home.prices), 40):
        home.prices[at] = Fraction(rng.randint(-100, 900), 1_000)
        changed.append({"device_id": "spot", "room": "hall", "timestamp": text(at), "price": float(home.prices[at])})
    ask("POST", "/readings", changed)
    for at in rng.sample(sorted(home.prices), 10):
        del home.prices[at]
        ask("DELETE", f"/devices/spot/readings?from={text(at)}&to={text(at + 1)}")


def served(command):
    """Starts a server and waits for its answers."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(200):
        try:
            with urllib.request.urlopen(BASE + "/health", timeout=60):
                return server
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the server does not answer")


def stop(server):
    server.terminate()
    server.wait()


def main():
    program = os.path.abspath(sys.argv[1])
    numbers = [int(word) for word in sys.argv[2:] if word.isdigit()]
    count, seed = (numbers + [100, 1][len(numbers):])[:2]
    spans = WHOLE if "--whole" in sys.argv else SHORT
    home, rng = Home(seed, spans), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        backup = os.path.join(folder, "home.ndjson")
        with open(backup, "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in home.lines())
        serve = [program, "serve", "--port", str(PORT), "--data-dir", data, "--empty", "--time-zone", HOME]
        stop(served(serve))
        subprocess.run([program, "import", backup, "--data-dir", data, "--yes"], check=True)
        server = served(serve)
        try:
            check(rng, home, count)
            correct(rng, home)
            settled()
            check(rng, home, max(count // 4, 10))
        finally:
            stop(server)
    print("every bill is that of the fractions")


if __name__ == "__main__":
    main()
