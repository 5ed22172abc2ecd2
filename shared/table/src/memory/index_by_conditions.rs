//! The index by conditions as memory has it.

use std::collections::BTreeMap;

use crate::{RollupKey, StoredRollup, StoredSchema};

/// The index by conditions.
#[derive(Debug, Default)]
pub(super) struct IndexByConditions {
    pub(super) exists: bool,
    pub(super) schema: Option<StoredSchema>,
    /// The rollups as the index has them while it lags behind the table.
    pub(super) held: Option<BTreeMap<RollupKey, StoredRollup>>,
}

impl IndexByConditions {
    /// Where there is no index, it is not complete when it comes.
    pub(super) fn distrust(&mut self) {
        if let Some(schema) = self.schema.as_mut().filter(|_| !self.exists) {
            schema.is_ready = false;
        }
    }
}
