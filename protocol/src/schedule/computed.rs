//! A property of a schedule that is computed when it is first needed.

use std::sync::OnceLock;

/// A value that follows from the rest of the schedule. Equal schedules are equal whether or not it has been computed.
#[derive(Clone, Debug)]
pub(super) struct Computed<T>(OnceLock<T>);

impl<T: Copy> Computed<T> {
    pub(super) fn get_or(&self, compute: impl FnOnce() -> T) -> T {
        *self.0.get_or_init(compute)
    }
}

impl<T> Default for Computed<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> PartialEq for Computed<T> {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}
