//! What a structure deals in.

/// Names a slot, and which use of the slot is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    pub(crate) index: u32,
    pub(crate) version: u16,
}

/// A token that has come out of a structure, and the tick in which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub(crate) tick: u64,
    pub(crate) token: Token,
}
