"""The series that queries in InfluxQL name: measurements, their fields, and tags with the values that are looked for.

Has no server. It reads a query by its words, not by its grammar: a name in `SELECT` or compared with a number is a
field, one in `GROUP BY` or compared with a text is a tag.
"""

import collections
import re

WORD = re.compile(
    r'\s+|(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<text>\'(?:[^\'\\]|\\.)*\')|(?P<regex>(?<=[(,~])\s*/(?:[^/\\]|\\.)+/|(?<=FROM )\s*/(?:[^/\\]|\\.)+/|(?<=SELECT )\s*/(?:[^/\\]|\\.)+/)'
    r"|(?P<number>\d+(?:\.\d+)?\w*)|(?P<word>\w+)|(?P<mark>::\w+|=~|!~|<>|!=|<=|>=|.)", re.I | re.S)
KEYWORDS = {"select", "from", "where", "group", "by", "order", "and", "or", "as", "limit", "offset", "slimit", "soffset",
            "time", "fill", "tz", "asc", "desc", "null", "none", "linear", "previous", "true", "false", "distinct", "now"}
COMPARED = {"=", "!=", "<>", "<", ">", "<=", ">=", "=~", "!~"}


class Wanted:
    """What queries name, by measurement."""

    def __init__(self):
        self.fields = collections.defaultdict(set)
        self.tags = collections.defaultdict(lambda: collections.defaultdict(set))
        self.policies = set()

    def add(self, query):
        select, _ = parsed(words(query), 0)
        if select:
            self.take(select)

    def take(self, select):
        for inner in select["inner"]:
            self.take(inner)
        if select["inner"]:
            # What a subquery is asked for beside its columns are tags of its measurements.
            return
        self.policies |= select["policies"]
        for measurement in select["from"]:
            tags = self.tags[measurement]
            for name, value in select["tags"]:
                tags[name].update([] if value is None else [value])
            self.fields[measurement] |= {it for it in select["fields"] if it not in tags}

    def series(self):
        """Each series: its measurement, its tags, its fields."""
        found = []
        for measurement, fields in sorted(self.fields.items()):
            tags = self.tags[measurement]
            fields = sorted(it for it in fields if it not in tags) or ["value"]
            values = {name: sorted(it for it in known if it) for name, known in tags.items()}
            number = max([2 if tags else 1, *(min(len(it), 4) for it in values.values())])
            for n in range(number):
                own = {name: (it[n % len(it)] if it else f"{name}{n}") for name, it in values.items()}
                found.append((measurement, own, fields))
            if any("" in known for known in tags.values()):
                own = {name: value for name, value in found[-1][1].items() if "" not in tags[name]}
                found.append((measurement, own, fields))
        return found


def words(query):
    found = []
    for match in WORD.finditer(re.sub(r"\s+", " ", query)):
        kind = match.lastgroup
        if kind:
            text = match.group(kind).strip()
            if kind in ("quoted", "text"):
                text = re.sub(r"\\(.)", r"\1", text[1:-1])
            found.append((kind, text))
    return found


def parsed(tokens, at):
    """A statement that begins at a place, and the place behind it."""
    select = {"from": [], "fields": set(), "tags": [], "inner": [], "policies": set()}
    part, depth, last = None, 0, None
    while at < len(tokens):
        kind, text = tokens[at]
        lower = text.lower() if kind == "word" else None
        following = tokens[at + 1] if at + 1 < len(tokens) else ("end", "")
        if lower == "select" and part is None:
            part = "select"
        elif lower in ("from", "where", "group", "order", "limit", "fill", "tz", "slimit"):
            part = lower
        elif (kind, text) == ("mark", "("):
            if part == "from" and following == ("word", following[1]) and following[1].lower() == "select":
                inner, at = parsed(tokens, at + 1)
                select["inner"].append(inner)
                continue
            depth += 1
        elif (kind, text) == ("mark", ")"):
            depth -= 1
            if depth < 0:
                return select, at + 1
        elif part == "select":
            is_alias = last == ("word", "as") or last == ("word", "AS")
            is_name = kind == "quoted" or (kind == "word" and lower not in KEYWORDS and following != ("mark", "("))
            if kind == "regex":
                select["fields"].update(examples(text))
            elif is_name and not is_alias:
                if following == ("mark", "::tag"):
                    select["tags"].append((text, None))
                else:
                    select["fields"].add(text)
        elif part == "from":
            if following == ("mark", "."):
                select["policies"].add(text)
            elif (kind, text) in (("mark", "."), ("mark", ",")):
                pass
            elif kind == "regex":
                select["from"] += examples(text)[:1]
            elif kind in ("quoted", "word"):
                select["from"].append(text)
        elif part == "where" and kind in ("quoted", "word") and lower not in KEYWORDS:
            cast = tokens[at + 1:at + 2] == [("mark", "::tag")]
            beyond = at + 1 + (following[1].startswith("::") if following[0] == "mark" else 0)
            operator, operand = (tokens[beyond:beyond + 2] + [("end", ""), ("end", "")])[:2]
            if operator[1] in COMPARED:
                if operand[0] == "text":
                    select["tags"].append((text, operand[1] if operator[1] == "=" else None if operand[1] else ""))
                elif operand[0] == "regex":
                    known = examples(operand[1]) if operator[1] == "=~" else [None]
                    select["tags"] += [(text, it) for it in known]
                elif cast:
                    select["tags"].append((text, None))
                else:
                    select["fields"].add(text)
        elif part == "group" and kind in ("quoted", "word") and lower not in KEYWORDS:
            select["tags"].append((text, None))
        last = (kind, text)
        at += 1
    return select, at


def examples(regex):
    """Some texts that a regular expression of a query matches."""
    parser = getattr(re, "_parser", None) or __import__("sre_parse")
    try:
        tree = parser.parse(regex.strip()[1:-1].replace("\\/", "/"))
    except re.error:
        return ["any"]
    return [example(tree, n) or f"any{n}" for n in range(3)]


def example(tree, n):
    text = ""
    for operation, value in tree:
        operation = str(operation).lower()
        if operation == "literal":
            text += chr(value)
        elif operation == "any":
            text += "x"
        elif operation == "in":
            first = value[0]
            text += "x" if str(first[0]).lower() in ("negate", "category") else chr(first[1] if isinstance(first[1], int) else first[1][0])
        elif operation == "branch":
            text += example(value[1][n % len(value[1])], n)
        elif operation == "subpattern":
            text += example(value[-1], n)
        elif operation in ("max_repeat", "min_repeat"):
            least, most, inner = value
            if most > 1 and least <= 1 and str(inner[0][0]).lower() == "any":
                text += "abc"[n % 3]
            else:
                text += example(inner, n) * max(least, 1)
    return text
