//! What the client process tells the server's: one line each, a name and numbers.

use std::fmt;

macro_rules! record {
    ($(#[$about:meta])* $name:ident, $word:literal { $($(#[$doc:meta])* $field:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $field: u64),+
        }

        impl $name {
            /// `None` if the line is something else.
            pub(crate) fn parse(line: &str) -> Option<Self> {
                let fields = line.strip_prefix(concat!($word, " "))?;
                let mut record = Self::default();
                for field in fields.split_whitespace() {
                    let (name, value) = field.split_once('=')?;
                    match name {
                        $(stringify!($field) => record.$field = value.parse().ok()?,)+
                        _ => return None,
                    }
                }
                Some(record)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($word)?;
                $(write!(f, " {}={}", stringify!($field), self.$field)?;)+
                Ok(())
            }
        }
    };
}

record! {
    /// How far the clients are.
    Progress, "progress" {
        open,
        /// Of the open ones, those that will never say anything again.
        silent,
        /// Messages that came back.
        echoed,
        closed,
    }
}

record! {
    /// How it ended.
    Outcome, "outcome" {
        opened,
        /// The system's error number, if it had no file or port for more connections.
        cut_short_by,
        /// Connections that the system took up but never completed, or refused.
        unconnected,
        /// Messages that came back.
        echoed,
        closed_as_idle,
        wrongly_closed,
        missed,
        /// Connections that the client has reset.
        reset,
        excused,
        /// Connections on which other bytes came back than were sent, or not all of them.
        garbled,
        late_p50_us,
        late_p99_us,
        late_p999_us,
        late_max_us,
        cpu_us,
    }
}
