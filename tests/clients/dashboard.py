"""The queries of an exported Grafana dashboard, with variables and macros as Grafana's data source renders them.

Has no server. Absent: queries in Flux and SQL, and repeated panels, whose variable has one value here.
"""

import re

# Grafana's roundInterval: an interval below the first number becomes the second one, in milliseconds.
ROUNDED = [
    (10, 1), (15, 10), (35, 20), (75, 50), (150, 100), (350, 200), (750, 500), (1_500, 1_000), (3_500, 2_000),
    (7_500, 5_000), (12_500, 10_000), (17_500, 15_000), (25_000, 20_000), (45_000, 30_000), (90_000, 60_000),
    (210_000, 120_000), (450_000, 300_000), (750_000, 600_000), (1_050_000, 900_000), (1_500_000, 1_200_000),
    (2_700_000, 1_800_000), (5_400_000, 3_600_000), (9_000_000, 7_200_000), (16_200_000, 10_800_000),
    (32_400_000, 21_600_000), (86_400_000, 43_200_000), (604_800_000, 86_400_000), (1_814_400_000, 604_800_000),
]
UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "M": 2_592_000_000,
         "y": 31_536_000_000}
# The points of a panel that does not say: its width in pixels.
USUAL_POINTS = 1_000


def targets(board, until, most):
    """Each panel's title and query, for a range of at most so many seconds that ends at `until`."""
    board = board.get("spec", board.get("dashboard", board))
    variables = variables_of(board)
    length = min(most, seconds(board))
    for panel, target in panels(board):
        query = text_of(target)
        if query is None:
            continue
        own = min(most, duration(panel.get("timeFrom")) // 1_000 or length)
        start = until - own
        points = panel.get("maxDataPoints") or USUAL_POINTS
        interval = max(rounded(own * 1_000 / points), duration(target.get("interval") or panel.get("interval")))
        macros = {
            "timeFilter": f"time >= {start}000ms and time <= {until}000ms",
            "__interval": shown(interval), "interval": shown(interval), "__interval_ms": str(interval),
            "__from": f"{start}000", "__to": f"{until}000", "__range": f"{own}s", "__range_s": str(own),
            "__range_ms": f"{own}000",
        }
        # A dashboard's own variable wins, but for Grafana's macros.
        if "interval" in variables:
            del macros["interval"]
        title = panel.get("title") or f"panel {panel.get('id')}"
        yield title, substituted(query, variables | macros).strip()


def panels(node, panel=None):
    """Each target, with the panel around it."""
    if isinstance(node, list):
        for it in node:
            yield from panels(it, panel)
    elif isinstance(node, dict):
        if "targets" in node and isinstance(node["targets"], list):
            panel = node
            for target in node["targets"]:
                source = target.get("datasource") or node.get("datasource") or {}
                kind = source.get("type", "influxdb") if isinstance(source, dict) else "influxdb"
                if kind in ("influxdb", "datasource", "mixed"):
                    yield panel, target
        for key, value in node.items():
            if key not in ("targets", "templating", "annotations"):
                yield from panels(value, panel)


def variables_of(board):
    inputs = {it["name"]: str(it.get("value", "")) for it in board.get("__inputs", [])}
    found = dict(inputs)
    for variable in (board.get("templating") or {}).get("list", []):
        value = (variable.get("current") or {}).get("value")
        if value in (None, "", [], {}):
            options = [it.get("value") for it in variable.get("options") or []]
            value = next((it for it in options if it not in (None, "")), None)
        if value in (None, "") and variable.get("type") in ("constant", "textbox", "custom", "interval"):
            value = str(variable.get("query") or "").split(",")[0].strip()
        if value in ("$__all", ["$__all"]):
            value = variable.get("allValue") or ".*"
        if isinstance(value, str) and value.startswith("$__auto_interval"):
            value = "$__interval"
        if value in (None, "") and variable.get("type") == "query":
            value = variable["name"]
        if isinstance(value, list):
            value = str(value[0]) if len(value) == 1 else "(" + "|".join(map(re.escape, map(str, value))) + ")"
        found[variable["name"]] = "" if value is None else str(value)
    return found


def substituted(text, variables):
    """The text with its variables; a value may name another one."""
    pattern = r"\$\{(\w+)(?:[:.][^}]*)?\}|\[\[(\w+)(?::[^\]]*)?\]\]|\$(\w+)"

    def value(match):
        name = next(it for it in match.groups() if it)
        return variables.get(name, match.group(0))

    for _ in range(3):
        text = re.sub(pattern, value, text)
    return text


def seconds(board):
    """The range of a dashboard, in seconds."""
    start = (board.get("time") or {}).get("from", "now-6h")
    if match := re.match(r"now-(\w+)", start):
        return duration(match.group(1)) // 1_000 or 21_600
    if match := re.match(r"now/(\w)", start):
        return duration("1" + match.group(1)) // 1_000
    return 21_600


def duration(text):
    match = re.match(r"[>]?(?:now-)?(\d+)(ms|[smhdwMy])", text or "")
    return int(match.group(1)) * UNITS[match.group(2)] if match else 0


def rounded(milliseconds):
    return next((interval for below, interval in ROUNDED if milliseconds < below), 2_592_000_000)


def shown(milliseconds):
    unit = next(it for it in ("d", "h", "m", "s", "ms") if milliseconds % UNITS[it] == 0)
    return f"{milliseconds // UNITS[unit]}{unit}"


def text_of(target):
    """The query of a target; `None` where it is none in InfluxQL."""
    query = target.get("query")
    if target.get("rawQuery") or not target.get("select"):
        is_influxql = isinstance(query, str) and re.match(r"\s*(select|show)\b", query, re.I)
        return query if is_influxql else None
    if not target.get("measurement"):
        return None
    text = "SELECT " + ", ".join(column(parts) for parts in target["select"]) + " FROM " + source(target)
    tags = target.get("tags") or []
    conditions = " ".join((it.get("condition") or "AND") + " " + condition(it) if n else condition(it) for n, it in enumerate(tags))
    text += " WHERE " + (f"({conditions}) AND " if conditions else "") + "$timeFilter"
    groups, fill = [], ""
    for part in target.get("groupBy") or []:
        values = part.get("params") or [""]
        if part["type"] == "time":
            groups.append(f"time({', '.join(values)})")
        elif part["type"] == "fill":
            fill = f" fill({values[0]})"
        else:
            groups.append(quoted(values[0]))
    text += " GROUP BY " + ", ".join(groups) + fill if groups else ""
    text += " ORDER BY time DESC" if target.get("orderByTime") == "DESC" else ""
    text += f" LIMIT {target['limit']}" if target.get("limit") else ""
    text += f" SLIMIT {target['slimit']}" if target.get("slimit") else ""
    text += f" tz('{target['tz']}')" if target.get("tz") else ""
    return text


def source(target):
    measurement = target["measurement"]
    name = measurement if measurement.startswith("/") else f'"{measurement}"'
    policy = target.get("policy") or "default"
    return name if policy == "default" else f'"{policy}".{name}'


def quoted(name):
    if name.startswith("/") or name == "*":
        return name
    name, kind = re.fullmatch(r"(.*?)((?:::\w+)?)", name, re.S).groups()
    return f'"{name}"{kind}'


def column(parts):
    text = ""
    for part in parts:
        values = [str(it) for it in part.get("params") or []]
        if part["type"] in ("field", "tag"):
            text = quoted(values[0])
        elif part["type"] == "math":
            text += values[0]
        elif part["type"] == "alias":
            text += f' AS "{values[0]}"'
        else:
            text = f"{part['type']}({', '.join([text, *values])})"
    return text


def condition(tag):
    value, operator = str(tag.get("value", "")), tag.get("operator")
    is_pattern = value.startswith("/") and value.endswith("/")
    operator = operator or ("=~" if is_pattern else "=")
    if operator not in ("=~", "!~", ">", "<", ">=", "<="):
        value = "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"{quoted(tag['key'])} {operator} {value}"
