//! Building a timer: a bad value is a typed error that names the value and what was expected.

use crate::common::ms;
use std::error::Error;
use std::time::Duration;
use wheelwork::executor::OnRefusal;
use wheelwork::timer::Builder;
use wheelwork::timer::WheelKind;
use wheelwork::wheel::{LevelSizeError, Wheel, WheelSizeError};
use wheelwork::{BuildError, HashedWheelTimer};

fn error_of(builder: Builder) -> (BuildError, String) {
    let error = builder.build().expect_err("a bad value");
    let text = error.to_string();
    (error, text)
}

fn builder() -> Builder {
    HashedWheelTimer::builder()
}

#[test]
fn rule_10_a_tick_out_of_range_is_an_error() {
    for (tick, named) in [
        (Duration::ZERO, "a tick of 0ns: expected 50µs to 146 years"),
        (Duration::from_nanos(49_999), "a tick of 49.999µs: expected 50µs to 146 years"),
        (Duration::MAX, "a tick of 18446744073709551615.999999999s: expected 50µs to 146 years"),
    ] {
        let (error, text) = error_of(builder().tick_duration(tick));
        assert!(
            matches!(error, BuildError::TickDuration { tick_duration } if tick_duration == tick)
        );
        assert_eq!(text, named);
    }
    assert!(builder().tick_duration(Duration::from_micros(50)).build().is_ok());
}

#[test]
fn rule_10_a_wheel_size_out_of_range_is_an_error() {
    for size in [0, (1 << 30) + 1, usize::MAX] {
        let (error, text) = error_of(builder().ticks_per_wheel(size));
        let BuildError::TicksPerWheel(WheelSizeError { ticks_per_wheel, .. }) = error else {
            panic!("{error:?}")
        };
        assert_eq!(ticks_per_wheel, size);
        assert!(text.contains(&size.to_string()) && text.contains("expected 1 to 1073741824"));
        let pure = Wheel::<(), _>::hashed(size).unwrap_err().to_string();
        assert_eq!(pure, format!("a wheel of {size} ticks: expected 1 to 1073741824 (2^30)"));
    }
}

#[test]
fn rule_10_a_level_size_out_of_range_is_an_error() {
    for size in [0, 1, 65_537] {
        let hierarchical = builder().wheel(WheelKind::Hierarchical);
        let (error, text) = error_of(hierarchical.ticks_per_wheel(size));
        let BuildError::LevelSize(LevelSizeError { buckets, .. }) = error else {
            panic!("{error:?}")
        };
        assert_eq!(buckets, size);
        assert_eq!(text, format!("ticks_per_wheel: levels of {size} buckets: expected 2 to 65536"));
    }
}

#[test]
fn a_setting_that_would_have_no_effect_is_an_error() {
    let linux = builder().wheel(WheelKind::LinuxClassic);
    let (error, text) = error_of(linux.clone().ticks_per_wheel(64));
    assert!(matches!(error, BuildError::FixedSize { ticks_per_wheel: 64 }));
    assert_eq!(text, "ticks_per_wheel is 64, but LinuxClassic has fixed sizes");
    assert!(linux.build().is_ok());
    let (error, text) = error_of(builder().on_refusal(OnRefusal::Wait));
    assert!(matches!(error, BuildError::NoExecutor));
    assert_eq!(text, "a policy for refused jobs, but no executor");
}

#[test]
fn rule_10_a_turn_that_overflows_is_an_error() {
    let tick = Duration::from_secs(86_400 * 365);
    let (error, text) = error_of(builder().tick_duration(tick).ticks_per_wheel(500));
    assert!(matches!(error, BuildError::TurnTooLong { ticks_per_wheel: 512, .. }));
    assert_eq!(
        text,
        "a tick of 31536000s in a wheel of 512 ticks: expected a turn of at most 292 years"
    );
    assert!(builder().tick_duration(tick).ticks_per_wheel(256).build().is_ok());
    let longest = Duration::from_nanos(1 << 62);
    assert!(builder().tick_duration(longest).ticks_per_wheel(2).build().is_ok(), "exactly");
}

#[test]
fn rule_10_a_limit_of_zero_is_an_error() {
    let (error, text) = error_of(builder().max_pending_timeouts(0));
    assert!(matches!(error, BuildError::NoPendingAllowed));
    assert_eq!(text, "the limit of pending timeouts must be greater than zero");
}

#[test]
fn a_thread_name_with_a_zero_byte_is_an_error() {
    let (error, text) = error_of(builder().thread_name("a\0b"));
    assert!(matches!(error, BuildError::ThreadName { name } if name == "a\0b"));
    assert_eq!(text, "the thread name \"a\\0b\" contains a zero byte");
}

#[test]
fn rule_09_a_thread_that_cannot_start_fails_the_build() {
    let (error, text) = error_of(builder().stack_size(usize::MAX / 4 * 3));
    assert!(matches!(error, BuildError::ThreadStart { .. }));
    assert_eq!(text, "the worker thread cannot be started");
    assert!(error.source().is_some(), "with what the system said");
}

#[test]
fn the_worker_has_the_given_name() {
    let timer = builder().thread_name("conn-timer").tick_duration(ms(1)).build().unwrap();
    let (sender, name) = std::sync::mpsc::channel();
    let task = move || sender.send(std::thread::current().name().map(str::to_owned)).unwrap();
    timer.new_timeout(task, ms(1)).unwrap();
    assert_eq!(name.recv().unwrap().as_deref(), Some("conn-timer"));
}

#[test]
fn handles_have_the_promised_size() {
    assert_eq!(size_of::<wheelwork::Timeout>(), 2 * size_of::<usize>());
    assert_eq!(size_of::<wheelwork::Unprocessed>(), 2 * size_of::<usize>());
    let timer = builder().build().unwrap();
    assert_eq!(
        format!("{timer:?}"),
        "HashedWheelTimer { tick_duration: 100ms, pending_timeouts: 0, is_stopped: false, .. }"
    );
}
