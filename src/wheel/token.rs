//! Tokens: what a structure holds in place of a timeout.

/// Tells the uses of one slot apart.
pub(crate) type Version = u16;

/// Names a timeout: its slot, and a version that tells the uses of that slot apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    pub(crate) index: u32,
    pub(crate) version: Version,
}

/// A token that has come out of a structure, with its tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub(crate) tick: u64,
    pub(crate) token: Token,
}
