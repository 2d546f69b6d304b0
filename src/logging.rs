//! What the library has to say goes through the `log` facade, if that feature is on; it never
//! prints.

#[cfg(feature = "log")]
macro_rules! warning {
    ($($arg:tt)+) => { log::warn!(target: "wheelwork", $($arg)+) };
}

#[cfg(not(feature = "log"))]
macro_rules! warning {
    ($($arg:tt)+) => { { let _ = format_args!($($arg)+); } };
}

pub(crate) use warning;
