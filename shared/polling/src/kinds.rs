//! All kinds of sources, a file each. Sends nothing.

mod json;
mod octopus;
mod price;
mod remo;
mod switchbot;
mod weather;

use domain::MemberError;

use crate::kind::SourceKind;

/// All kinds, in the order in which people see them.
pub const SOURCE_KINDS: [&SourceKind; 6] = [
    &remo::REMO,
    &switchbot::SWITCHBOT,
    &weather::WEATHER,
    &price::PRICE,
    &octopus::OCTOPUS,
    &json::JSON,
];

impl SourceKind {
    /// The kind with a name.
    pub fn named(name: &str) -> Result<&'static Self, MemberError> {
        let found = SOURCE_KINDS.into_iter().find(|kind| kind.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = SOURCE_KINDS.iter().map(|kind| kind.name).collect();
            MemberError::of("kind", format!("is {name:?}; expected one of {}", names.join(", ")))
        })
    }

    /// Whether people write the requests of the kind themselves.
    pub fn is_json(&self) -> bool {
        self.name == json::JSON.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placeholder::Values;

    #[test]
    fn each_recipe_is_a_list_of_requests_with_values_for_their_placeholders() {
        for kind in SOURCE_KINDS {
            let own: Vec<_> = kind.members.iter().map(|member| member.name).collect();
            for asking in kind.askings(&Values::new()) {
                for name in asking.placeholders() {
                    let is_time = crate::time_window::is_time(&name);
                    let is_listed = kind.directory.is_some() && name == "device";
                    let is_own = own.contains(&name.as_str());
                    assert!(is_time || is_listed || is_own, "{}: {name}", kind.name);
                }
            }
            assert!(kind.is_json() || !kind.askings(&Values::new()).is_empty(), "{}", kind.name);
            assert!(kind.every >= kind.least_every, "{}", kind.name);
        }
    }
}
