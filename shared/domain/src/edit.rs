//! An edit of a field that may have no value. No I/O.

use serde::{Deserialize, Deserializer};

/// A person's edit of one field. In JSON `null` clears the field, and an absent member keeps the value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Edit<T> {
    /// Keeps the value.
    #[default]
    Keep,
    /// Removes the value.
    Clear,
    /// Sets a value.
    Set(T),
}

impl<T> Edit<T> {
    /// The edit if it sets a value, otherwise an edit that keeps the value.
    #[must_use]
    pub fn or_keep(self) -> Self {
        if matches!(self, Self::Clear) { Self::Keep } else { self }
    }

    /// Converts the value that the edit sets.
    pub fn try_map<U, E>(self, map: impl FnOnce(T) -> Result<U, E>) -> Result<Edit<U>, E> {
        match self {
            Self::Keep => Ok(Edit::Keep),
            Self::Clear => Ok(Edit::Clear),
            Self::Set(value) => map(value).map(Edit::Set),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Edit<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

impl<T: Clone> Edit<T> {
    /// Applies the edit to a field.
    pub fn apply(&self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value.clone()),
        }
    }

    /// Applies the edit to a field whose cleared value is the default.
    pub fn apply_or_empty(&self, field: &mut T)
    where
        T: Default,
    {
        match self {
            Self::Keep => {}
            Self::Clear => *field = T::default(),
            Self::Set(value) => field.clone_from(value),
        }
    }
}
