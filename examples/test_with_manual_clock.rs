//! A test of code with timeouts that does not sleep: a `ManualClock` moves only when it is told to.
//!
//! `cargo run --example test_with_manual_clock`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wheelwork::{HashedWheelTimer, ManualClock, RescheduleError, Timeout};

const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);
const MINUTE: Duration = Duration::from_secs(60);

/// The code under test: a login that ends after half an hour without a click. It takes the timer as
/// an argument, so that a test can give it one on another clock.
struct Login {
    is_valid: Arc<AtomicBool>,
    end: Timeout,
}

impl Login {
    fn new(timer: &HashedWheelTimer) -> Result<Self, Box<dyn Error>> {
        let is_valid = Arc::new(AtomicBool::new(true));
        let valid = is_valid.clone();
        let end = timer.new_timeout(move || valid.store(false, Ordering::SeqCst), HALF_AN_HOUR)?;
        Ok(Self { is_valid, end })
    }

    fn click(&self) -> Result<(), RescheduleError> {
        self.end.reschedule(HALF_AN_HOUR)
    }

    fn is_valid(&self) -> bool {
        self.is_valid.load(Ordering::SeqCst)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    let login = Login::new(&timer)?;

    clock.advance(HALF_AN_HOUR - MINUTE);
    assert!(login.is_valid());
    login.click()?;
    // When the call returns, everything that was due has run.
    clock.advance(HALF_AN_HOUR - MINUTE);
    assert!(login.is_valid(), "the click has pushed the end back");
    clock.advance(MINUTE);
    assert!(!login.is_valid(), "half an hour after the click");

    let (passed, took) = (clock.elapsed().as_secs() / 60, started.elapsed());
    println!("OK: tested {passed} minutes of a login in {took:.1?}");
    Ok(())
}
