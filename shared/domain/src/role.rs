//! The role of a meter: which way the energy flows that a metric measures, as a person, a sender or a name says.
//! Adds up nothing.

use serde::Deserialize;

crate::words! {
    /// The role of a meter: import and consumer count as consumption, export as sold, none as nothing; production and
    /// storage are left out of sums and named.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Role {
        /// It measures what comes from the grid.
        Import = "import",
        /// It measures what goes to the grid.
        Export = "export",
        /// It measures what is produced, on a roof for example.
        Production = "production",
        /// It measures what goes into a battery or comes out of it.
        Storage = "storage",
        /// It measures what one consumer, or some, use.
        Consumer = "consumer",
        /// It counts as nothing: a copy of another, or a figure that is of no interest.
        None = "none",
    }
}

/// Words of what goes to the grid; a word may have more before and behind.
const EXPORT: [&str; 6] = ["export", "einspeis", "eingespeis", "inject", "teruglever", "feedin"];
/// The same, as whole words.
const EXPORT_WORDS: [&str; 3] = ["sold", "return", "returned"];
/// Words of what comes from the grid.
const IMPORT: [&str; 2] = ["import", "netzbezug"];
/// The same, as whole words.
const IMPORT_WORDS: [&str; 3] = ["bought", "purchased", "bezug"];
/// Words of what is produced.
const PRODUCTION: [&str; 5] = ["produc", "photovolt", "erzeug", "generated", "generation"];
/// The same, as whole words.
const PRODUCTION_WORDS: [&str; 4] = ["solar", "pv", "yield", "ertrag"];
/// Words of consumption. Beside them, a word of production is doubtful.
const CONSUMPTION: [&str; 6] = ["consum", "usage", "used", "verbrauch", "verbruik", "gebruik"];
/// What else makes that doubtful: an own consumption, and what takes heat or power from the sun.
const DOUBTFUL_WORDS: [&str; 7] = ["load", "heater", "boiler", "pump", "light", "lamp", "self"];
/// Whole words of a house's battery.
const BATTERY_WORDS: [&str; 8] =
    ["battery", "batteries", "batterie", "akku", "accu", "speicher", "powerwall", "batterij"];
/// Words of what goes into a battery or comes out of it.
const CHARGE: [&str; 5] = ["charg", "laden", "ladung", "lade", "opgeladen"];
/// Whole words of a vehicle, whose battery is a consumer.
const VEHICLE_WORDS: [&str; 8] =
    ["car", "ev", "vehicle", "auto", "wallbox", "charger", "evse", "bike"];

impl Role {
    /// The role that the name of a meter leaves no doubt about. A name of two roles has none, nor has the name of
    /// a consumer, which may be a part of another meter or the whole.
    pub fn of_name(name: &str) -> Option<Self> {
        let lower = name.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();

        let has =
            |parts: &[&str]| words.iter().any(|word| parts.iter().any(|part| word.contains(part)));
        let is = |known: &[&str]| words.iter().any(|word| known.contains(word));
        let pair = |pair: [&str; 2]| words.windows(2).any(|following| *following == pair);
        let obis = |register: [&str; 2]| {
            words.len() > 2 && words[words.len() - 3..words.len() - 1] == register
        };

        let is_export = has(&EXPORT)
            || is(&EXPORT_WORDS)
            || pair(["feed", "in"])
            || pair(["to", "grid"])
            || obis(["2", "8"]);
        let is_import =
            has(&IMPORT) || is(&IMPORT_WORDS) || pair(["from", "grid"]) || obis(["1", "8"]);
        let is_production = has(&PRODUCTION) || is(&PRODUCTION_WORDS);
        let is_used = has(&CONSUMPTION) || is(&DOUBTFUL_WORDS);

        if is(&BATTERY_WORDS) {
            let is_flow = has(&CHARGE) || is_export || is_import;
            return (is_flow && !is(&VEHICLE_WORDS) && !is_used).then_some(Self::Storage);
        }

        match (is_export, is_import, is_production) {
            (true, false, _) if !is_used => Some(Self::Export),
            (false, true, false) => Some(Self::Import),
            (false, false, true) if !is_used => Some(Self::Production),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_read_as_it_is_written() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(serde_json::json!(role), role.as_str());
        }
        assert_eq!(Role::parse("bought"), None);
    }
}
