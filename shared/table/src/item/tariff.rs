//! The item of a tariff. Knows no price.

use super::attribute::{RULE_CHANGED, SETTINGS, VERSION};
use super::form::{At, Text, Whole};
use super::kind::kind;
use crate::StoredTariff;

kind! { StoredTariff = Tariff(id) {
    version: Whole = VERSION,
    edited: At = RULE_CHANGED,
    written: Text = SETTINGS,
} }
