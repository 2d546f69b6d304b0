//! Why a statement failed, as PostgreSQL says it.

/// Why a statement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("deadlock detected")]
    Deadlock,
    #[error("canceling statement due to lock timeout")]
    LockTimeout,
    #[error("canceling statement due to statement timeout")]
    StatementTimeout,
    #[error("canceling statement due to user request")]
    Cancelled,
    #[error("ON CONFLICT DO UPDATE command cannot affect row a second time")]
    Twice,
    #[error("duplicate key value violates unique constraint")]
    Unique,
    /// The cast that fails on purpose.
    #[error("another transaction has stored its key or id meanwhile, so begin again")]
    Overtaken,
    #[error("current transaction is aborted")]
    Aborted,
    #[error("cannot execute it in a read-only transaction")]
    ReadOnly,
    /// Of the network.
    #[error("connection closed")]
    Closed,
}

impl Fault {
    /// Its SQLSTATE.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Deadlock => "40P01",
            Self::LockTimeout => "55P03",
            Self::StatementTimeout | Self::Cancelled => "57014",
            Self::Twice => "21000",
            Self::Unique => "23505",
            Self::Overtaken => "22P02",
            Self::Aborted => "25P02",
            Self::ReadOnly => "25006",
            Self::Closed => "08006",
        }
    }
}
