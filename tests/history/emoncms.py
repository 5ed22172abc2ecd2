"""A backup of Emoncms for the check of imports, written as its engines and its export write it, and the sums that it
holds. Absent: feeds in MySQL.

https://github.com/emoncms/emoncms/blob/master/Modules/feed/engine/PHPFina.php,
https://github.com/emoncms/backup/blob/master/emoncms-export.sh
"""

import io
import random
import struct
import tarfile
from decimal import Decimal

BEGIN = 1_767_225_600  # 2026-01-01T00:00:00Z
MONTHS = {1: (BEGIN, BEGIN + 31 * 86_400), 2: (BEGIN + 31 * 86_400, BEGIN + 59 * 86_400)}
INTERVAL = 1_800
DUMP = """-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB
CREATE TABLE `feeds` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `name` text DEFAULT NULL,
  `userid` int(11) DEFAULT NULL,
  `tag` text DEFAULT NULL,
  `engine` int(11) NOT NULL DEFAULT 0,
  `unit` varchar(10) DEFAULT '',
  PRIMARY KEY (`id`)
) ENGINE=MyISAM AUTO_INCREMENT=4 DEFAULT CHARSET=latin1;
INSERT INTO `feeds` VALUES (1,'use',1,'Zähler \\'A\\'',5,'W'),(2,'use_kwh',1,'Zähler \\'A\\'',5,'kWh'),(3,'Außen',1,'',2,'°C');
"""


def shortest(number):
    """The shortest decimal that is this number of 32 bits."""
    packed = struct.pack("<f", number)
    return Decimal(next(text for text in (f"{number:.{digits}g}" for digits in range(1, 10)) if struct.pack("<f", float(text)) == packed))


def write(path):
    """Writes the backup. Returns the kWh of each month, and count and sum of each month's power and temperature."""
    chance = random.Random(10)
    power, total, outside, reading = [], [], [], 7_000.0
    for number in range(59 * 86_400 // INTERVAL + 1):
        is_gap = 900 < number < 1_000
        reading += chance.random() / 3
        power.append(float("nan") if is_gap else chance.random() * 3_000)
        total.append(float("nan") if is_gap else reading)
        if number % 3 == 0:
            outside.append((BEGIN + number * INTERVAL + 7, chance.uniform(-10, 15)))
    meta = struct.pack("<4I", 0, 0, INTERVAL, BEGIN)
    files = {
        "emoncms.sql": DUMP.encode(), "emonhub.conf": b"[hub]\n",
        "phpfina/1.dat": struct.pack(f"<{len(power)}f", *power), "phpfina/1.meta": meta,
        "phpfina/2.dat": struct.pack(f"<{len(total)}f", *total), "phpfina/2.meta": meta,
        "phptimeseries/feed_3.MYD": b"".join(struct.pack("<BIf", 249, at, value) for at, value in outside),
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    rounded = [struct.unpack("<f", struct.pack("<f", value))[0] for value in total]
    values = {"use": [], "Außen": []}
    for number, value in enumerate(power):
        if value == value:
            values["use"].append((BEGIN + number * INTERVAL, shortest(struct.unpack("<f", struct.pack("<f", value))[0])))
    values["Außen"] = [(at, shortest(struct.unpack("<f", struct.pack("<f", value))[0])) for at, value in outside]
    energy, sums = {}, {}
    for month, (begin, end) in MONTHS.items():
        first, last = ((at - BEGIN) // INTERVAL for at in (begin, end))
        energy[month] = shortest(rounded[last]) - shortest(rounded[first])
        for name, rows in values.items():
            of_month = [value for at, value in rows if begin <= at < end]
            sums[name, month] = (len(of_month), sum(of_month))
    return energy, sums
