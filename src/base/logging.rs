//! The library reports through the `log` facade, if that feature is on; it never prints.
//!
//! A logger is code of the user, and so is the clock that a timeout reads when it is printed. Either
//! may panic, so each line is logged inside an isolation. A panic of the logger cannot be reported.

#[cfg(feature = "log")]
macro_rules! warning {
    ($($arg:tt)+) => {
        let _ = $crate::base::isolate::panics(|| log::warn!(target: "wheelwork", $($arg)+));
    };
}

#[cfg(not(feature = "log"))]
macro_rules! warning {
    ($($arg:tt)+) => { { let _ = format_args!($($arg)+); } };
}

pub(crate) use warning;
