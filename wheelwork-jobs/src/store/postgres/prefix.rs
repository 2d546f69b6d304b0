//! What the names of the tables have before `wheelwork_`, so that one schema can hold several sets of them.

use crate::store::{Result, StoreError};
use std::borrow::Cow;
use std::sync::Arc;

/// All statements use names that begin with this.
pub(super) const NAMES: &str = "wheelwork_";

/// What the names of the tables have before `wheelwork_`.
#[derive(Clone, Default)]
pub(super) struct Prefix(Arc<str>);

impl Prefix {
    /// PostgreSQL cuts off names of more than 63 bytes.
    const LONGEST: usize = 32;

    pub(super) fn new(text: &str) -> Result<Self> {
        let is_first = |c: char| c.is_ascii_lowercase() || c == '_';
        let is_other = |c: char| is_first(c) || c.is_ascii_digit();
        if text.len() > Self::LONGEST || !text.starts_with(is_first) || !text.chars().all(is_other)
        {
            let refused = format!(
                "the prefix {text:?}: expected at most {} of a-z, 0-9 and _, the first no digit",
                Self::LONGEST
            );
            return Err(StoreError::new("name its tables", refused).undone());
        }
        Ok(Self(text.into()))
    }

    /// A statement with these names.
    pub(super) fn apply<'a>(&self, statement: &'a str) -> Cow<'a, str> {
        match &*self.0 {
            "" => Cow::Borrowed(statement),
            prefix => Cow::Owned(statement.replace(NAMES, &format!("{prefix}{NAMES}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_that_is_no_name_is_refused() {
        let long = "x".repeat(33);
        for wrong in ["", "Mail", "1mail", "mail-", "mail\"; DROP", &long] {
            let error = Prefix::new(wrong).err().expect(wrong).to_string();
            assert!(error.contains(&format!("{wrong:?}: expected at most 32")), "{error}");
        }
        assert!(Prefix::new(&long[1..]).is_ok());
    }
}
