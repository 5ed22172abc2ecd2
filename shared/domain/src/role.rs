//! The role of a meter: the direction of the measured energy, according to a person, a sender or a name. Adds up
//! nothing.

use serde::Deserialize;

crate::words! {
    /// The role of a meter. Import and consumer count as used energy, export counts as sold energy, and none is
    /// ignored. Sums leave out production and storage, and say so.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Role {
        /// Measures energy from the grid.
        Import = "import",
        /// Measures energy to the grid.
        Export = "export",
        /// Measures production, on a roof for example.
        Production = "production",
        /// Measures energy into a battery or out of a battery.
        Storage = "storage",
        /// Measures the use of one or more consumers.
        Consumer = "consumer",
        /// Is ignored: a copy of another metric, or a value that nobody needs.
        None = "none",
    }
}

/// Parts of words for energy to the grid.
const EXPORT: [&str; 6] = ["export", "einspeis", "eingespeis", "inject", "teruglever", "feedin"];
/// Whole words for energy to the grid.
const EXPORT_WORDS: [&str; 3] = ["sold", "return", "returned"];
/// Parts of words for energy from the grid.
const IMPORT: [&str; 2] = ["import", "netzbezug"];
/// Whole words for energy from the grid.
const IMPORT_WORDS: [&str; 3] = ["bought", "purchased", "bezug"];
/// Parts of words for production.
const PRODUCTION: [&str; 5] = ["produc", "photovolt", "erzeug", "generated", "generation"];
/// Whole words for production.
const PRODUCTION_WORDS: [&str; 4] = ["solar", "pv", "yield", "ertrag"];
/// Parts of words for consumption. In a name with such a word, words for production, export and storage are doubtful.
const CONSUMPTION: [&str; 6] = ["consum", "usage", "used", "verbrauch", "verbruik", "gebruik"];
/// Whole words that make words for production, export and storage doubtful too: words for own consumption, and for
/// devices that take heat or power from the sun.
const DOUBTFUL_WORDS: [&str; 7] = ["load", "heater", "boiler", "pump", "light", "lamp", "self"];
/// Whole words for the battery of a house.
const BATTERY_WORDS: [&str; 8] =
    ["battery", "batteries", "batterie", "akku", "accu", "speicher", "powerwall", "batterij"];
/// Parts of words for energy into a battery or out of a battery.
const CHARGE: [&str; 5] = ["charg", "laden", "ladung", "lade", "opgeladen"];
/// Whole words for a vehicle, whose battery is a consumer.
const VEHICLE_WORDS: [&str; 8] =
    ["car", "ev", "vehicle", "auto", "wallbox", "charger", "evse", "bike"];

impl Role {
    /// The role that a meter's name states without doubt. `None` if the words of the name contradict each other. `None`
    /// also for a consumer, whose energy another meter may measure too.
    pub fn of_name(name: &str) -> Option<Self> {
        let lower = name.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();

        let has =
            |parts: &[&str]| words.iter().any(|word| parts.iter().any(|part| word.contains(part)));
        let is = |known: &[&str]| words.iter().any(|word| known.contains(word));
        let pair = |pair: [&str; 2]| words.windows(2).any(|following| *following == pair);
        // An OBIS code such as 1-0:1.8.0 ends with the register, here 1.8, and the tariff.
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
