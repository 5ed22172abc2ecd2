//! An edit of a field that may have no value. No I/O.

/// A person's edit of one field.
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

impl<T: Clone> Edit<T> {
    /// Applies the edit to a field.
    pub fn apply(&self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value.clone()),
        }
    }

    /// Applies the edit to a field that is empty when it is cleared.
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
