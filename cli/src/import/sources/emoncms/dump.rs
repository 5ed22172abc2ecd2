//! Reads the rows of a table in a `MySQL` dump. Knows no table.

use std::io::BufRead;

use anyhow::{Context as _, bail};

use crate::import::text_lines::TextLines;

/// Reads the rows of a table. `each` gets a function that returns the text of a column, or `None` for NULL.
pub(super) fn read(
    reader: impl BufRead,
    table: &str,
    mut each: impl FnMut(&dyn Fn(&str) -> Option<String>),
) -> anyhow::Result<()> {
    let (create, insert) = (format!("CREATE TABLE `{table}` ("), format!("INSERT INTO `{table}` "));
    let (mut columns, mut is_definition) = (Vec::new(), false);
    let mut lines = TextLines::new(reader);
    while let Some(line) = lines.read()? {
        // A line that is too long belongs to another table.
        if line.is_err() {
            continue;
        }
        let text = String::from_utf8_lossy(&lines.text);
        let text = text.trim();
        if text.starts_with(&create) {
            is_definition = true;
        } else if is_definition {
            match text.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
                Some((name, _)) => columns.push(name.to_owned()),
                None => is_definition = !text.starts_with(')'),
            }
        } else if let Some(rest) = text.strip_prefix(&insert) {
            let mut rest = rest;
            let mut of_statement = Vec::new();
            if let Some(list) = rest.strip_prefix('(') {
                let (list, behind) = list.split_once(')').context("a list of columns ends")?;
                of_statement =
                    list.split(',').map(|name| name.trim().trim_matches('`').to_owned()).collect();
                rest = behind.trim_start();
            }
            let names = if of_statement.is_empty() { &columns } else { &of_statement };
            let values = rest.strip_prefix("VALUES").context("there are no VALUES")?;
            for row in rows(values)? {
                each(&|column| {
                    let place = names.iter().position(|name| name == column)?;
                    row.get(place)?.clone()
                });
            }
        }
    }
    Ok(())
}

/// Parses the rows of an `INSERT`, such as `(1,'a',NULL),(2,'b',3.5);`.
fn rows(text: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), None, String::new());
    let mut is_text = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, &mut row) {
            ('(', None) => row = Some(Vec::new()),
            ('\'', Some(_)) => {
                is_text = true;
                loop {
                    match characters.next() {
                        None => bail!("a text does not end"),
                        Some('\'') if characters.next_if_eq(&'\'').is_some() => cell.push('\''),
                        Some('\'') => break,
                        Some('\\') => cell.push(match characters.next() {
                            Some('n') => '\n',
                            Some('t') => '\t',
                            Some('r') => '\r',
                            Some(c) => c,
                            None => bail!("a text does not end"),
                        }),
                        Some(c) => cell.push(c),
                    }
                }
            }
            (',' | ')', Some(cells)) => {
                let value = std::mem::take(&mut cell);
                let is_null = !std::mem::take(&mut is_text) && value == "NULL";
                cells.push((!is_null).then_some(value));
                if c == ')' {
                    rows.extend(row.take());
                }
            }
            (c, Some(_)) if !c.is_whitespace() => cell.push(c),
            (',' | ';', None) => {}
            (c, None) if !c.is_whitespace() => bail!("{c:?} is not expected"),
            _ => {}
        }
    }
    anyhow::ensure!(row.is_none(), "the last row does not end");
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_columns_of_the_table_or_of_the_statement() {
        let dump = "-- MySQL dump\nCREATE TABLE `users` (\n  `id` int\n);\nINSERT INTO `users` VALUES (1);\n\
            CREATE TABLE `feeds` (\n  `id` int(11) NOT NULL,\n  `name` text,\n  `unit` varchar(10) DEFAULT '',\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n\
            INSERT INTO `feeds` VALUES (1,'K\u{fc}che \\'a\\', ''b'' (c);\\\\','kWh'),(2,NULL,'');\n\
            INSERT INTO `feeds` (`name`, `id`) VALUES ('x',3);\n";
        let mut found = Vec::new();
        read(dump.as_bytes(), "feeds", |column| {
            found.push(
                ["id", "name", "unit", "tag"]
                    .map(|name| column(name).unwrap_or("-".into()))
                    .join("|"),
            );
        })
        .unwrap();
        assert_eq!(found, ["1|Küche 'a', 'b' (c);\\|kWh|-", "2|-||-", "3|x|-|-"]);
        for text in [" (1,'a", " (1", " x", " ('a\\"] {
            assert!(rows(text).is_err(), "{text}");
        }
    }
}
