"""The log of a Shelly meter of three phases for the check of imports, and what the meter itself sends. Absent: the first
generation, which unit tests read.

https://shelly-api-docs.shelly.cloud/gen2/ComponentsAndServices/EMData
"""

import json
import random
from decimal import Decimal

PHASES = "abc"
COLUMNS = ["total_act_energy", "fund_act_energy", "total_act_ret_energy", "avg_voltage"]


class Meter:
    """A meter that has counted since long before its log begins; its totals are in Wh."""

    def __init__(self, begin, minutes):
        chance = random.Random(11)
        self.begin, self.minutes = begin, minutes
        self.rows = [{phase: Decimal(chance.randrange(0, 400_000)) / 10_000 for phase in PHASES} for _ in range(minutes)]
        self.totals = [{phase: Decimal("5000000") + 1_000 * n for n, phase in enumerate(PHASES)}]
        for row in self.rows:
            self.totals.append({phase: self.totals[-1][phase] + row[phase] for phase in PHASES})

    def kwh(self, minute):
        return sum(self.totals[minute].values()) / 1_000

    def log(self):
        lines = [",".join(["timestamp", *(f"{phase}_{column}" for phase in PHASES for column in COLUMNS)])]
        for minute, row in enumerate(self.rows):
            if minute in (100, 101, 102):
                continue  # a loss of power
            cells = [f"{row[phase]:.4f},{row[phase]:.4f},0.0000,230.{minute % 10}00" for phase in PHASES]
            lines.append(f"{self.begin + 60 * minute}," + ",".join(cells))
        return "\r\n".join(lines) + "\r\n"

    def status(self, seconds, name):
        """What it sends at a time, within a minute."""
        minute, rest = divmod(seconds - self.begin, 60)
        now = {phase: self.totals[minute][phase] + self.rows[minute][phase] * rest / 60 for phase in PHASES}
        energies = {f"{phase}_total_act_energy": float(round(value, 2)) for phase, value in now.items()}
        energies |= {f"{phase}_total_act_ret_energy": 0.0 for phase in PHASES}
        energies |= {"total_act": float(round(sum(now.values()), 2)), "total_act_ret": 0.0}
        return json.dumps({"src": name, "method": "NotifyStatus", "params": {"ts": seconds + 0.25, "emdata:0": {"id": 0, **energies}}}).encode()
