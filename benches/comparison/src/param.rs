//! A param: `name=value;name=value`, or `-` for none.

/// Empty if there is no such name.
pub fn value<'a>(param: &'a str, name: &str) -> &'a str {
    let pairs = param.split(';').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
}

/// 0 if there is no such number.
pub fn count(param: &str, name: &str) -> u64 {
    value(param, name).parse().unwrap_or(0)
}

/// The param of the control that belongs to `param`; `None` if there is none, or if it is one.
pub fn control_of(param: &str) -> Option<String> {
    param.strip_suffix(OWN_TIMER).map(|flood| format!("{flood}{CONTROL}"))
}

pub fn is_control(param: &str) -> bool {
    param.ends_with(CONTROL)
}

/// A flood goes to the timer of the heartbeat; its control goes to another one.
pub const OWN_TIMER: &str = "timer=same";
pub const CONTROL: &str = "timer=other";

/// `tick=1ms;load=idle` as "tick 1 ms, idle"; `pending=10000` as "10k pending".
pub fn in_words(param: &str) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some(("captures", "0")) => "no captures".to_owned(),
        Some(("captures", "arc")) => "an Arc captured".to_owned(),
        Some(("captures", bytes)) => format!("{bytes} bytes captured"),
        Some(("load", load)) => load.to_owned(),
        Some(("flood", "cancel_ended")) => "cancel what has run".to_owned(),
        Some(("flood", kind)) => kind.replace('_', " and "),
        Some(("tick", tick)) => format!("tick {}", tick.replace("us", " µs").replace("ms", " ms")),
        Some((things, "1")) => format!("1 {}", things.trim_end_matches('s')),
        Some((name, value)) => format!("{} {name}", count_in_words(value.parse().unwrap_or(0))),
        None => part.to_owned(),
    };
    let parts = param.split(';').filter(|part| ![OWN_TIMER, CONTROL].contains(part));
    parts.map(part).collect::<Vec<_>>().join(", ")
}

/// 10000000 as "10M".
pub fn count_in_words(count: u64) -> String {
    match count {
        1.. if count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        1.. if count.is_multiple_of(1_000) => format!("{}k", count / 1_000),
        _ => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_read_well() {
        for (param, words) in [
            ("producers=1;captures=0", "1 producer, no captures"),
            ("tick=100us;load=busy", "tick 100 µs, busy"),
            ("pending=10000", "10k pending"),
            ("captures=arc;timeouts=1000", "an Arc captured, 1k timeouts"),
            ("threads=16;flood=schedule_cancel;timer=same", "16 threads, schedule and cancel"),
            ("-", "-"),
        ] {
            assert_eq!(in_words(param), words);
        }
        assert_eq!(count("threads=16;flood=rolling", "threads"), 16);
    }
}
