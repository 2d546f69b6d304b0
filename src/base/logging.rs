//! Warnings through the `log` facade, if that feature is on. The library never prints.
//!
//! A logger is user code. So is the clock that a timeout reads when it is printed. Both may panic,
//! so each line is logged inside `isolate`. A panic of the logger itself cannot be reported.

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
