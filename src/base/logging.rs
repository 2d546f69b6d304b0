//! Warnings through the `log` facade and as `tracing` events, as far as these features are on. The
//! library never prints.
//!
//! A logger is user code, and so is a subscriber, and the clock that a timeout reads when it is printed.
//! All may panic, so each line is logged inside `catch_panic`. A panic of the logger itself cannot be
//! reported.

/// Whether a warning reaches anybody. Without these features, the compiler drops what only they need.
pub(crate) const WARNS: bool = cfg!(any(feature = "log", feature = "tracing"));

/// Logs a warning. The fields, in brackets, are fields of the event; a log line has the text alone.
macro_rules! warning {
    ([$($field:ident = $value:expr),*], $($arg:tt)+) => {{
        if $crate::base::logging::WARNS {
            let _ = $crate::base::catch_panic::panics(|| {
                $crate::base::logging::log!($($arg)+);
            });
            let _ = $crate::base::catch_panic::panics(|| {
                $crate::base::logging::event!([$($field = $value),*], $($arg)+);
            });
        }
    }};
    ($($arg:tt)+) => { $crate::base::logging::warning!([], $($arg)+) };
}

#[cfg(feature = "log")]
macro_rules! log {
    ($($arg:tt)+) => { log::warn!(target: "wheelwork", $($arg)+) };
}

#[cfg(not(feature = "log"))]
macro_rules! log {
    ($($arg:tt)+) => { let _ = format_args!($($arg)+); };
}

#[cfg(feature = "tracing")]
macro_rules! event {
    ([$($field:ident = $value:expr),*], $($arg:tt)+) => {
        tracing::warn!(target: "wheelwork", $($field = $value,)* $($arg)+)
    };
}

#[cfg(not(feature = "tracing"))]
macro_rules! event {
    ([$($field:ident = $value:expr),*], $($arg:tt)+) => { let _ = ($(&$value,)*); };
}

pub(crate) use {event, log, warning};
