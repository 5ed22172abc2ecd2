//! Statements as they are read, and the words in which others are refused.

use super::*;

fn refused(text: &str) -> String {
    parse(text, &Parameters::default()).expect_err(text).to_string()
}

#[test]
fn errors_are_those_of_the_real_server() {
    let statements = STATEMENTS.join(", ");
    for (text, expected) in [
        ("SELECT", "found EOF, expected identifier, string, number, bool at line 1, char 8"),
        ("SELEC value", &*format!("found SELEC, expected {statements} at line 1, char 1")),
        ("SELECT value", "found EOF, expected FROM at line 1, char 14"),
        ("SELECT value FROM", "found EOF, expected identifier at line 1, char 19"),
        ("SELECT v FROM t GROUP", "found EOF, expected BY at line 1, char 23"),
        ("SELECT v FROM t LIMIT x", "found x, expected integer at line 1, char 23"),
        ("SELECT v FROM t LIMIT -1", "found -, expected integer at line 1, char 23"),
        ("SELECT v FROM t ORDER BY v", "only ORDER BY time supported at this time"),
        ("SELECT mean(v FROM t", "found FROM, expected ) at line 1, char 15"),
        ("SELECT v FROM t fill(x)", "expected number argument in fill()"),
        ("SELECT v FROM t tz('x')", "unable to find time zone x"),
        ("SELECT v FROM t tz(x)", "expected string argument in tz()"),
        ("SELECT v FROM a.b.c.d", "too many segments in \"a\".\"b\".\"c\".d at line 1, char 1"),
        ("SELECT v FROM t WHERE d =~ 'a'", "found a, expected regex at line 1, char 28"),
        ("SELECT v FROM t WHERE d = $x", "missing parameter: x"),
        (
            "SELECT v FROM t WHERE time > now() - 200000d",
            "overflowed duration 200000d: choose a smaller duration or INF",
        ),
        ("SELECT v FROM t WHERE time > now() - 10y", "invalid duration"),
        ("SHOW TAG VALUES FROM t", "found EOF, expected WITH at line 1, char 24"),
        ("SELECT v FROM t;\nfoo", &*format!("found foo, expected {statements} at line 2, char 1")),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn a_query_is_bounded_in_every_direction() {
    let deep = |n: usize| format!("SELECT {}v{} FROM t", "(".repeat(n), ")".repeat(n));
    assert!(parse(&deep(31), &Parameters::default()).is_ok());
    for (text, expected) in [
        (deep(100_000 / 4), "nested deeper than 32"),
        (format!("SELECT v{} FROM t", "+1".repeat(10_000)), "more than 500 operators in chains"),
        (format!("SELECT v{} FROM t", "*1-1".repeat(10_000)), "more than 500 operators in chains"),
        (format!("SELECT {}v FROM t", "1-1-(".repeat(10_000)), "nested deeper than 32"),
        (format!("SELECT v FROM t WHERE v{}", "=1".repeat(10_000)), "more than 500 operators"),
        (format!("SELECT {}v FROM t", " -".repeat(10_000)), "nested deeper"),
        ("SELECT v FROM t;".repeat(11), "more than 10 statements"),
        (format!("SELECT v FROM {}t", "(SELECT v FROM ".repeat(4_000)), "more than 10 subqueries"),
        (format!("SELECT v FROM t{}", " ".repeat(MAX_TEXT)), "longer than 65536 bytes"),
    ] {
        let why = refused(&text);
        assert!(why.contains(expected), "{why}");
    }
    for long in ["v".to_owned() + &"+1".repeat(501), vec!["v * 2"; 501].join(" - ")] {
        assert!(parse(&format!("SELECT {long} FROM t"), &Parameters::default()).is_ok());
    }
    let many = vec!["d = 'a'"; 1_000].join(" OR ");
    assert!(parse(&format!("SELECT v FROM t WHERE {many}"), &Parameters::default()).is_ok());
}

#[test]
fn what_writes_is_refused_by_name() {
    for (text, name) in [
        ("DROP MEASUREMENT t", "DROP MEASUREMENT"),
        ("DELETE FROM t WHERE time < now()", "DELETE"),
        ("SELECT v INTO x FROM t", "SELECT INTO"),
        ("SHOW USERS", "SHOW USERS"),
        ("CREATE USER x WITH PASSWORD 'y'", "CREATE USER"),
        ("CREATE SUBSCRIPTION s ON d.a DESTINATIONS ALL 'u'", "CREATE SUBSCRIPTION"),
        ("DROP SUBSCRIPTION s ON d.a", "DROP SUBSCRIPTION"),
        ("SHOW FIELD KEY CARDINALITY", "SHOW FIELD CARDINALITY"),
        ("SHOW SERIES EXACT CARDINALITY FROM t", "SHOW SERIES CARDINALITY"),
    ] {
        let found = parse(text, &Parameters::default()).expect(text);
        assert_eq!(found, [Statement::Unsupported(name.to_owned())], "{text}");
    }
    for text in
        ["CREATE DATABASE \"x\"", "CREATE RETENTION POLICY p ON d DURATION 1h REPLICATION 1"]
    {
        assert_eq!(parse(text, &Parameters::default()), Ok(vec![Statement::Create]), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(SELECT|SHOW|FROM|WHERE|[a-z]|[-+*/(),;'\"$=~<>.: ]|[0-9]{1,3}[smh]?| ){0,60}") {
        let _ = parse(&text, &Parameters::default());
    }

    #[test]
    fn no_other_text_does_either(text in "\\PC{0,80}") {
        let _ = parse(&text, &Parameters::default());
    }
}
