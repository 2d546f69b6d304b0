//! Titles and units, and how figures are written.

/// What is measured, in a few words, and where a figure needs it, a sentence.
pub struct Title {
    pub name: &'static str,
    pub about: &'static str,
}

/// The workload's own name, if it is not known.
pub fn title(workload: &str) -> Title {
    let (name, about) = match workload {
        "floor" => ("the floor", "What no timer can do without, on this machine."),
        "schedule" => ("schedule", "1M timeouts, delays of 1 to 60 s, handles kept."),
        "schedule_cancel" => ("schedule and cancel", "Each is cancelled at once."),
        "rolling" => {
            ("rolling window", "Of 100k live ones, the oldest is cancelled, a new one scheduled.")
        }
        "reschedule" => ("reschedule", "100k live ones, pushed back in turn."),
        "fire_same_tick" => ("fire, all at one instant", "From the first run to the last."),
        "fire_spread" => ("fire, spread over a second", "Ticks of 1 ms."),
        "resident" => ("resident", "Far timeouts pending, ticks of 1 ms, nothing due."),
        "memory" => ("memory", "Growth of the resident memory (Netty: of the heap in use)."),
        "memory_storm" => ("memory after a storm", "50M timeouts of 60 s, each cancelled at once."),
        "lateness" => ("lateness", "10,000 a second, delays of 5 to 500 ms."),
        "growth" => ("growth", "Beside as many far timeouts as the column says."),
        "backlog" => ("backlog", "A fresh timeout of one tick under a flood of cancelled ones."),
        "flood" => (
            "a heartbeat beside floods",
            "A timeout of 5 ms after the other, ticks of 1 ms, beside threads that use the timer as \
             fast as they can; and as control, beside threads that use another one.",
        ),
        "calls" => ("calls under a flood", "1,000 far timeouts, ticks of 100 ms."),
        "crowd" => {
            ("schedule and cancel, by a crowd", "16 bytes captured; core time for one operation.")
        }
        "short_lived" => (
            "timeouts of threads that have ended",
            "16 bytes captured; by so many threads 10k in all; growth of the resident memory.",
        ),
        _ => ("other", ""),
    };
    Title { name, about }
}

/// What a metric is called, with its unit.
pub fn metric(metric: &str) -> &str {
    match metric {
        "clock_ns" => "clock read, ns",
        "atomic_ns" => "atomic, ns",
        "queue_push_ns" => "queue push, ns",
        "ns_per_op" => "ns for one",
        "cpu_ns_per_op" => "CPU ns for one",
        "p99_late_us" => "late p99, µs",
        "cpu_percent" => "% of a core",
        "wakeups_per_s" => "wake-ups a second",
        "bytes_per_timeout" => "bytes for one",
        "rss_mib_after" => "resident, MiB",
        "heap_mib_after" => "heap in use, MiB",
        "p50_us" => "p50, µs",
        "p99_us" => "p99, µs",
        "p999_us" => "p99.9, µs",
        "max_us" => "max, µs",
        "schedule_ns" => "schedule, ns",
        "cancel_ns" => "cancel, ns",
        "expire_ns" => "expire, ns",
        "ticks_late" => "ticks late",
        "stop_ms" => "stop, ms",
        "stop_max_ms" => "worst",
        "metrics_ms" => "metrics, ms",
        "metrics_max_ms" => "worst",
        "pending_ms" => "pending_timeouts, ms",
        "pending_max_ms" => "worst",
        "p50_ms" => "p50, ms",
        "p99_ms" => "p99, ms",
        "max_ms" => "max, ms",
        other => other,
    }
}

/// The unit of a metric; empty for a plain number.
pub fn unit(metric: &str) -> &'static str {
    match metric.rsplit('_').next() {
        Some("ns" | "op") => "ns",
        Some("us") => "µs",
        Some("ms") => "ms",
        Some("timeout") => "bytes",
        _ => "",
    }
}

/// `tick=1ms;load=idle` as "tick 1ms, idle"; `pending=10000` as "10k pending".
pub fn param(param: &str) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some(("producers", "1")) => "1 producer".to_owned(),
        Some(("threads", "1")) => "1 thread".to_owned(),
        Some(("captures", "0")) => "no captures".to_owned(),
        Some(("captures", "arc")) => "an Arc captured".to_owned(),
        Some(("captures", bytes)) => format!("{bytes} bytes captured"),
        Some(("load", load)) => load.to_owned(),
        Some(("flood", kind)) => match kind {
            "schedule_cancel" => "schedule and cancel".to_owned(),
            "cancel_ended" => "cancel what has run".to_owned(),
            _ => kind.to_owned(),
        },
        Some(("timer", _)) => "on another timer".to_owned(),
        Some(("tick", tick)) => format!("tick {}", tick.replace("us", " µs").replace("ms", " ms")),
        Some((name, value)) => match value.parse() {
            Ok(count) => format!("{} {name}", count_of(count)),
            Err(_) => part.to_owned(),
        },
        None => part.to_owned(),
    };
    let parts = param.split(';').filter(|part| *part != OWN_TIMER);
    parts.map(part).collect::<Vec<_>>().join(", ")
}

/// Whether a param is the control of another one.
pub fn is_control(param: &str) -> bool {
    param.ends_with(CONTROL)
}

/// The param of the control that belongs to `param`.
pub fn control_of(param: &str) -> String {
    param.replace(OWN_TIMER, CONTROL)
}

/// A flood goes to the timer of the heartbeat unless its param says otherwise.
const OWN_TIMER: &str = "timer=same";
const CONTROL: &str = "timer=other";

/// 10000000 as "10M".
pub fn count_of(count: u64) -> String {
    match count {
        0 => "0".to_owned(),
        _ if count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        _ if count.is_multiple_of(1_000) => format!("{}k", count / 1_000),
        _ => count.to_string(),
    }
}

/// The number in `present=1000`, or 0.
pub fn count_in(param: &str) -> u64 {
    param.split_once('=').and_then(|(_name, value)| value.parse().ok()).unwrap_or(0)
}

/// Three significant digits; whole numbers, and what is larger, in full.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size.fract() == 0.0 => with_separators(value),
        size if size < 0.0095 => format!("{value:.4}").trim_end_matches('0').to_owned(),
        size if size < 0.9995 => format!("{value:.3}").trim_end_matches('0').to_owned(),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => with_separators(value),
    }
}

fn with_separators(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// As "1.8x"; `None` where a quotient has no meaning.
pub fn ratio(value: f64, base: f64) -> Option<String> {
    (value > 0.0 && base > 0.0).then(|| factor(value / base))
}

/// Two digits: the figures do not bear more.
pub fn factor(ratio: f64) -> String {
    match ratio {
        _ if ratio < 0.0095 => "<0.01x".to_owned(),
        _ if ratio < 0.95 => format!("{ratio:.2}x"),
        _ if ratio < 9.95 => format!("{ratio:.1}x"),
        _ => format!("{}x", with_separators(ratio)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let written = [0.001, 0.0031, 0.0304, 0.5, 1.0, 9.99, 12.34, 99.9, 123.4, 12_345.6, -45.0];
        let expected =
            ["0.001", "0.0031", "0.03", "0.5", "1", "9.99", "12.3", "99.9", "123", "12,346", "-45"];
        assert_eq!(written.map(number), expected);
    }

    #[test]
    fn ratios_are_rounded_and_never_of_nothing() {
        assert_eq!(ratio(3.0, 2.0).unwrap(), "1.5x");
        assert_eq!(ratio(2500.0, 2.0).unwrap(), "1,250x");
        assert_eq!(ratio(1.0, 50.0).unwrap(), "0.02x");
        assert_eq!(ratio(1.0, 5000.0).unwrap(), "<0.01x");
        assert_eq!(ratio(3.0, 0.0), None);
        assert_eq!(ratio(-1.0, 5.0), None);
    }

    #[test]
    fn params_read_well() {
        assert_eq!(param("producers=1;captures=0"), "1 producer, no captures");
        assert_eq!(param("producers=2;captures=16"), "2 producers, 16 bytes captured");
        assert_eq!(param("tick=100us;load=busy"), "tick 100 µs, busy");
        assert_eq!(param("pending=10000"), "10k pending");
        assert_eq!(param("captures=arc;timeouts=1000"), "an Arc captured, 1k timeouts");
        let flood = "threads=16;flood=cancel_ended;timer=same";
        assert_eq!(param(flood), "16 threads, cancel what has run");
        assert_eq!(param(&control_of(flood)), "16 threads, cancel what has run, on another timer");
        assert_eq!(param("-"), "-");
    }
}
