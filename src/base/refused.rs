//! A refused value inside its error, on its way back to its owner.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A value that a call has refused, inside the call's error. Take it out with
/// [`into_inner`](Self::into_inner).
///
/// A shared reference to it gives no access to the value. So it is `Sync` for every `T: Send`, and so is
/// the error that contains it. `?` converts such an error into a `Box<dyn Error + Send + Sync>` for every
/// `T`.
// The mutex is never locked. It makes `Send` values `Sync` without unsafe code.
pub(crate) struct Refused<T>(Mutex<T>);

impl<T> Refused<T> {
    /// Returns the value.
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> From<T> for Refused<T> {
    fn from(value: T) -> Self {
        Self(Mutex::new(value))
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refused")
    }
}
