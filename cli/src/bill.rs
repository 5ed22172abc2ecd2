//! `roomtide bill`: prints what energy cost by the tariffs of a server, line by line. Computes nothing.

use std::fmt::Write as _;

use serde_json::Value;

use crate::answer_text::{columns, elements, list, shown, text};
use crate::at::Unnamed;
use crate::client::Ask;
use crate::objects::{ObjectArgs, encoded};

/// The command line of `roomtide bill`.
#[derive(Debug, clap::Args)]
pub(crate) struct BillArgs {
    /// The start: a date such as 2026-01-01, or a time; by default the start of this month
    #[arg(long, allow_hyphen_values = true)]
    from: Option<String>,
    /// The end, exclusive; by default now
    #[arg(long, allow_hyphen_values = true)]
    to: Option<String>,
    /// A row for each unit, such as 1d or 1mo; without it only the total
    #[arg(long)]
    every: Option<String>,
    /// Tariffs, separated by commas, all billed by the meters of the first; by default each tariff with meters
    #[arg(long)]
    tariff: Option<String>,
    /// A device, whose energy is billed as if all of it had been bought
    #[arg(long)]
    device: Option<String>,
    #[command(flatten)]
    objects: ObjectArgs,
}

/// Runs the command.
pub(crate) fn run(args: &BillArgs) -> anyhow::Result<()> {
    args.objects.at.work(Unnamed::Server, |client| {
        let answer = client.value(Ask::get(&args.path()), "bills")?;
        args.objects.show(&answer, |answer| bills(answer, args.every.is_some()));
        Ok(())
    })
}

impl BillArgs {
    /// The path of the request, with its parameters.
    fn path(&self) -> String {
        let Self { from, to, every, tariff, device, .. } = self;
        let device = device.as_ref().map(|device| format!("/devices/{}", encoded(device)));
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in [("from", from), ("to", to), ("every", every), ("tariff", tariff)] {
            query.extend_pairs(value.as_ref().map(|value| (name, value)));
        }
        format!("{}/cost?{}", device.unwrap_or_default(), query.finish())
    }
}

/// The bills of an answer as text.
fn bills(answer: &Value, with_rows: bool) -> String {
    if elements(answer, "bills").next().is_none() {
        return "no tariff has meters; roomtide tariffs set --help says how to make one".to_owned();
    }

    let [from, to, zone] = ["from", "to", "tz"].map(|name| text(answer, name));
    let mut lines = format!("{from} to {to}, {zone}\n");
    for bill in elements(answer, "bills") {
        let is_of_bill = |row: &&Value| row["tariff"] == bill["tariff"];
        writeln!(lines, "\n{}", text(bill, "name")).unwrap_or_default();
        if with_rows {
            let rows: Vec<_> =
                list(answer).iter().filter(is_of_bill).map(|row| period(row, bill)).collect();
            lines.push_str(&columns(&rows));
        }
        let rows: Vec<_> = elements(bill, "lines").map(|line| line_row(line, bill)).collect();
        lines.push_str(&columns(&rows));
        let is_share = bill["as_if_bought"] == true;
        let what = if is_share { "sum, as if all had been bought" } else { "sum" };
        let (amount, currency) = (shown(&bill["amount"]), text(bill, "currency"));
        writeln!(lines, "{what} {amount} {currency}").unwrap_or_default();
        if let Some(due) = bill["due"].as_str() {
            writeln!(lines, "due {due} {currency}").unwrap_or_default();
        }
    }

    for missing in elements(answer, "incomplete") {
        let bill = elements(answer, "bills").find(|bill| bill["tariff"] == missing["tariff"]);
        let unit = bill.map_or("kWh", |bill| text(bill, "unit"));
        writeln!(lines, "{}", incomplete(missing, unit)).unwrap_or_default();
    }
    let hidden = shown_less(answer);
    if hidden > 0 {
        writeln!(lines, "incomplete: and {hidden} more").unwrap_or_default();
    }
    if answer.get("rollups_lack").is_some() {
        lines += "late readings or prices are not rolled up yet; the bill lacks what they change\n";
    }
    lines
}

/// The number of further entries of `incomplete` that the answer counts and does not show.
fn shown_less(answer: &Value) -> u64 {
    let all = answer["incomplete_count"].as_u64().unwrap_or_default();
    all.saturating_sub(elements(answer, "incomplete").count() as u64)
}

/// A row of time.
fn period(row: &Value, bill: &Value) -> [String; 4] {
    let used = format!("{} {}", shown(&row["used"]), text(bill, "unit"));
    let amount = format!("{} {}", shown(&row["amount"]), text(bill, "currency"));
    let is_incomplete = row["incomplete"] == true;
    let note = if is_incomplete { "incomplete" } else { "" };
    [text(row, "timestamp").to_owned(), used, amount, note.to_owned()]
}

/// A line of a bill.
fn line_row(line: &Value, bill: &Value) -> [String; 3] {
    let unit = match text(line, "per") {
        "used" | "sold" => text(bill, "unit"),
        per => per,
    };
    let quantity = match &line["quantity"] {
        Value::Null => unit.to_owned(),
        quantity => format!("{} {unit}", shown(quantity)),
    };
    let name = format!("{} {}", text(line, "name"), text(line, "zone"));
    let amount = format!("{} {}", shown(&line["amount"]), text(bill, "currency"));
    [name.trim_end().to_owned(), quantity, amount]
}

/// What a bill lacks, as a sentence. `unit` is the unit of what is billed.
fn incomplete(missing: &Value, unit: &str) -> String {
    let what = match text(missing, "what") {
        "price" => "no price",
        "tariff" => "no line has a price for what was used",
        "energy" => "it is unknown what was used",
        "spread" => "measured over a time in which its price changed, and spread evenly",
        "days" => "a list of days has no date in the year",
        "meter" => "a meter is deleted, has no such metric or another unit than the first",
        other => other,
    };
    let named = [text(missing, "tariff"), text(missing, "line"), text(missing, "name")];
    let named: Vec<&str> = named.into_iter().filter(|name| !name.is_empty()).collect();
    let energy = missing["kwh"].is_number().then(|| format!(", {} {unit}", shown(&missing["kwh"])));
    let (from, to) = (text(missing, "from"), text(missing, "to"));
    format!("incomplete: {} {from} to {to}: {what}{}", named.join(" "), energy.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use super::*;
    use crate::tests::others_refused::ensure_others_are_refused;
    use crate::tests::parsed;

    #[test]
    fn a_bill_says_what_it_lacks_in_its_own_unit() {
        let answer = serde_json::json!({
            "from": "x", "to": "y", "tz": "UTC", "data": [], "rollups_lack": {"changes_since": "z"},
            "incomplete_count": 3,
            "bills": [{"tariff": "gas", "name": "Gas", "currency": "EUR", "unit": "m3", "lines": [], "amount": 1}],
            "incomplete": [{"what": "price", "tariff": "gas", "line": "E", "from": "x", "to": "y", "kwh": 2}],
        });
        let text = bills(&answer, false);
        let lacks = "incomplete: gas E x to y: no price, 2 m3\nincomplete: and 2 more\n\
                     late readings or prices are not rolled up yet; the bill lacks what they change\n";
        assert!(text.ends_with(lacks), "{text}");
    }

    #[test]
    fn what_something_else_answers_is_no_bill() {
        let cases = [
            (&["--device", "a/b", "--every", "1d"][..], "/devices/a%2Fb/cost"),
            (&["--from", "2026-01-01T00:00:00+01:00"], "/cost"),
            (&["--from", "-30d", "--to", "-1d"], "/cost"),
        ];
        ensure_others_are_refused("bill", &cases, |words| {
            run(&parsed(words).unwrap()).map(|()| ExitCode::SUCCESS)
        });
    }
}
