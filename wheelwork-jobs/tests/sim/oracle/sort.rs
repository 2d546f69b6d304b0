//! What a job is.

/// A check knows it by the job's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Also the members of groups.
    #[default]
    Plain,
    /// So many of them run at once on all nodes.
    Few,
    /// So many of them begin in a period on all nodes.
    Rated,
    /// A node holds few of them.
    Tight,
    Unique,
    /// It runs when the members of its group have ended.
    Last,
    Periodic,
}

impl Sort {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Few => "few",
            Self::Rated => "rated",
            Self::Tight => "tight",
            Self::Plain | Self::Unique | Self::Last | Self::Periodic => "n",
        }
    }
}
