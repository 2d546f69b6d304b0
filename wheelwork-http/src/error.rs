//! Errors.

use crate::limit::Limit;
use std::io;

/// A limit has passed: the source of an [`io::Error`] of kind [`TimedOut`](io::ErrorKind::TimedOut), or the error
/// of a [`RequestBody`](crate::RequestBody).
///
/// ```
/// use wheelwork_http::LimitPassed;
///
/// fn is_of_a_limit(error: &std::io::Error) -> bool {
///     error.get_ref().is_some_and(|source| source.is::<LimitPassed>())
/// }
/// # is_of_a_limit(&std::io::ErrorKind::TimedOut.into());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitPassed(pub(crate) Limit);

impl LimitPassed {
    /// The limit.
    pub fn limit(self) -> Limit {
        self.0
    }
}

impl std::fmt::Display for LimitPassed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the limit {} has passed", self.0)
    }
}

impl std::error::Error for LimitPassed {}

impl From<LimitPassed> for io::Error {
    fn from(passed: LimitPassed) -> Self {
        Self::new(io::ErrorKind::TimedOut, passed)
    }
}

/// Any error, as hyper takes it from services and bodies.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
