use super::*;
use std::thread;
use std::time::Duration;

/// Compares the quick clock with `Instant` for 100 ms, in bursts, and for a minute at most until the rate is known,
/// which a busy machine keeps from being measured, unless the counter is given up. The pauses between bursts are
/// longer than a window. Returns how many reads found an anchor.
fn compare() -> usize {
    start();
    let begin = Instant::now();
    let (mut last, mut anchored) = (0, 0);
    let may_go_on = |anchored| {
        let waits = anchored == 0 && counter::drives_the_system_clock() && !is_given_up();
        begin.elapsed() < if waits { Duration::from_secs(60) } else { Duration::from_millis(100) }
    };
    while may_go_on(anchored) {
        for _ in 0..200 {
            let before = Instant::now();
            let quick = now();
            assert!(quick >= nanos_at(before), "behind by {}", nanos_at(before) - quick);
            assert!(quick >= last, "the quick clock went back");
            last = quick;
            anchored += usize::from(ANCHOR.get().window > 0);
        }
        thread::sleep(Duration::from_micros(200));
    }
    anchored
}

#[test]
fn rule_02_the_quick_clock_is_never_behind_instant_and_never_goes_back() {
    let anchored: usize = thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(compare));
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert_eq!(anchored > 0, counter::drives_the_system_clock());
}

/// If a thread were interrupted between the reads, its clock would run ahead by that time.
#[test]
fn rule_02_an_anchor_is_ahead_of_its_instant_and_invalid_if_its_reads_were_interrupted() {
    let read_until = |until| anchor(50, 1000, until, |_, _| 7);
    let held = read_until(50 + UNDISTURBED - 1);
    assert_eq!((held.count, held.window, held.rate), (50, WINDOW, 7));
    assert!(held.nanos > 1000, "the counter may be read too early");
    assert_eq!(read_until(50 + UNDISTURBED).window, 0, "interrupted");
    assert_eq!(read_until(49).window, 0, "the counter went back");
    assert_eq!(anchor(50, 1000, 51, |_, _| 0).window, 0, "no rate yet");
}

/// Takes an anchor at count 1000 and 1 s, with a counter of 3 GHz. Then the counter advances by
/// `counted` nanoseconds and `Instant` by `passed`. Returns whether the counter is given up.
fn gives_up(counted: u64, passed: u64) -> bool {
    let rate = rate_over(1_000_000, 3_000_000).unwrap();
    let last = anchor(1000, 1_000_000_000, 1001, |_, _| rate);
    last.is_behind(1_000_000_000 + passed, (counted * 3).wrapping_add(1000))
}

/// The kernel may run its clock 11 % faster or slower, both while the rate is measured and
/// later.
#[test]
fn a_sound_counter_is_never_given_up() {
    const YEAR: u64 = 365 * 24 * 3600 * 1_000_000_000;
    for passed in [0, 50, 22_000, 30_000, 1_000_000, 3_600_000_000_000, 20 * YEAR] {
        assert!(!gives_up(passed, passed));
        assert!(!gives_up(passed, (u128::from(passed) * 111 / 89) as u64), "faster");
        assert!(!gives_up(passed, (u128::from(passed) * 89 / 111) as u64), "slower");
    }
    assert!(!gives_up(0, MARGIN), "read a few instructions early");
}

#[test]
fn rule_02_a_counter_that_loses_time_is_given_up() {
    const SECOND: u64 = 1_000_000_000;
    assert!(gives_up(30_000, 60_000), "half as fast");
    assert!(gives_up(SECOND, SECOND * 14 / 10));
    assert!(gives_up(30_000, 50_000), "lost 20 us in one window");
    assert!(gives_up(30_000, 3600 * SECOND), "it stood still");
    assert!(gives_up(0, SECOND));
    assert!(!gives_up(30_000, 37_000), "the surplus makes up for it");
    let back = anchor(1 << 40, 0, 1 << 40, |_, _| 1 << 32);
    assert!(back.is_behind(30_000, (1 << 40) - 1) && back.is_behind(30_000, 0), "it went back");
}

/// First a suspended machine: the counter runs on, the clock stands still. Then a counter that
/// is too fast.
#[test]
fn a_counter_that_runs_ahead_is_kept() {
    const HOUR: u64 = 3600 * 1_000_000_000;
    assert!(!gives_up(HOUR, 0) && !gives_up(100_000 * HOUR, 1000));
    assert!(!gives_up(60_000, 30_000));
}

/// Runs in a process of its own, because that process gives the counter up.
#[test]
fn rule_02_a_counter_that_fails_is_given_up_by_all_threads() {
    let path = concat!(module_path!(), "::the_process_whose_counter_fails");
    let test = path.split_once("::").unwrap().1; // without the crate's name
    let own = std::env::current_exe().unwrap();
    let child = std::process::Command::new(own).args(["--exact", test, "--ignored"]).output();
    let child = child.unwrap();
    let report = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && report.contains("1 passed"), "{report}");
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn the_process_whose_counter_fails() {
    compare();
    if !counter::drives_the_system_clock() {
        return;
    }
    let uses_the_counter = || ANCHOR.get().window > 0 && since(ANCHOR.get()).is_some();
    let anchored = || (0..1000).any(|_| now() > 0 && uses_the_counter());
    assert!(anchored(), "it is in use");
    thread::scope(|scope| {
        // The anchor is ahead of the counter and of the clock, so the counter seems to have
        // gone back.
        scope.spawn(|| {
            assert!(anchored(), "a new thread uses the counter");
            let (count, rate) = (counter::read() + (1 << 40), RATE.load(Ordering::Relaxed));
            ANCHOR.set(Anchor { count, nanos: u64::MAX / 2, window: WINDOW, rate });
            let before = nanos_at(Instant::now());
            assert!((before..u64::MAX / 4).contains(&now()), "the anchor is rejected");
        });
    });
    assert!(is_given_up() && !uses_the_counter(), "a valid anchor is no longer used");
    compare();
    thread::spawn(|| assert!(compare() == 0 && is_given_up())).join().unwrap();
}

#[test]
fn rule_02_the_rate_is_three_tenths_too_fast_and_absurd_ones_are_refused() {
    let three_gigahertz = rate_over(1_000_000, 3_000_000).unwrap();
    let counted = (three_gigahertz * 30_000) >> 32;
    assert!((12_999..=13_000).contains(&counted), "{counted}");
    assert_eq!(rate_over(1_000_000, 0), None);
    assert_eq!(rate_over(1_000_000, 10), None);
    assert_eq!(rate_over(1, 1_000_000), None);
    let fastest = *RATES.end() as u64 / 10 * 13;
    assert!(WINDOW.checked_mul(fastest).is_some(), "no product overflows");
}

/// On a suspended machine the counter runs on and the clock stands still. A rate measured
/// across that is far too low, and must not be used.
#[test]
fn rule_02_a_measurement_that_disagrees_is_not_used() {
    const MS: u64 = 1_000_000;
    let mut calibrator = Calibrator { base: None, last: None };
    let mut measure = |count_ms: u64, ms| calibrator.measure(count_ms * 3 * MS, ms * MS);
    assert_eq!(measure(0, 0), None);
    assert_eq!(measure(5, 5), None, "too short");
    assert_eq!(measure(5020, 20), None, "five seconds asleep, and the first measurement");
    assert_eq!(measure(5040, 40), None, "differs from the first");
    assert_eq!(measure(9040, 4040), None, "too long");
    assert_eq!(measure(9060, 4060), None, "nothing to compare with");
    assert_eq!(measure(9080, 4080), rate_over(MS, 3 * MS));
}

/// The two may differ by one percent, and each must take at least ten milliseconds.
#[test]
fn two_measurements_that_agree_are_used() {
    const US: u64 = 1000;
    let second = |counts_per_us| {
        let mut calibrator = Calibrator { base: None, last: None };
        assert_eq!(calibrator.measure(0, 0), None);
        assert_eq!(calibrator.measure(10_000 * 3000, 10_000 * US), None, "the first");
        let counts = 10_000 * 3000 + 10_000 * counts_per_us;
        calibrator.measure(counts, 20_000 * US)
    };
    for counts_per_us in [2980, 3000, 3020] {
        assert_eq!(second(counts_per_us), rate_over(US, counts_per_us));
    }
    assert_eq!((second(2950), second(3050)), (None, None));
}

/// A thread whose counter jumps ahead takes a new anchor, and the counter stays in use.
#[test]
fn a_thread_takes_a_new_anchor_when_the_counter_jumps() {
    start();
    let read_at = |count| {
        let (nanos, rate) = (u64::MAX / 2, 1 << 32);
        ANCHOR.set(Anchor { count, nanos, window: WINDOW, rate });
        now()
    };
    for jump in [1 << 40, WINDOW] {
        let count = counter::read().wrapping_sub(jump);
        let before = nanos_at(Instant::now());
        assert!((before..u64::MAX / 4).contains(&read_at(count)));
    }
    if counter::drives_the_system_clock() {
        // In one of many attempts, the thread is not interrupted.
        assert!(
            (0..1000).any(|_| read_at(counter::read()) >= u64::MAX / 2),
            "a valid anchor is used"
        );
    }
}
