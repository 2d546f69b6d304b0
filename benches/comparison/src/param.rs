//! A param: `name=value;name=value`, or `-` for none.

use crate::sizes::Sizes;

/// Empty if there is no such name.
pub fn value<'a>(param: &'a str, name: &str) -> &'a str {
    let pairs = param.split(';').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
}

/// 0 if there is no such number.
pub fn count(param: &str, name: &str) -> u64 {
    value(param, name).parse().unwrap_or(0)
}

/// A flood goes to the timer of the heartbeat; its control goes to another timer.
const OWN_TIMER: &str = "timer=same";
const CONTROL: &str = "timer=other";

/// The param of the control that belongs to `param`, if there is one.
pub fn control_of(param: &str) -> Option<String> {
    param.strip_suffix(OWN_TIMER).map(|flood| format!("{flood}{CONTROL}"))
}

pub fn is_control(param: &str) -> bool {
    param.ends_with(CONTROL)
}

/// All params of a pattern. In `a=1|2;b=$fire`, `|` separates alternatives, and `$fire` is that size.
/// `$crew` doubles from 1 up to the cores, and to 2 at least. `10..1000` is 10, 100 and 1000.
pub fn expand(pattern: &str, sizes: &Sizes, cores: u64) -> Vec<String> {
    let crew = (0..).map(|n| 1u64 << n).take_while(|n| *n <= cores.max(2));
    let crew: Vec<_> = crew.map(|n| n.to_string()).collect();
    let mut pattern = pattern.replace("$crew", &crew.join("|"));
    for (name, size) in sizes.by_name() {
        pattern = pattern.replace(&format!("${name}"), &size.to_string());
    }
    pattern.split(';').fold(vec![String::new()], |params, part| {
        let (name, values) = part.split_once('=').map_or(("", part), |(n, values)| (n, values));
        let equals = if name.is_empty() { "" } else { "=" };
        let values: Vec<_> = values.split('|').flat_map(powers_of_ten).collect();
        let with = |param: &String| {
            let semicolon = if param.is_empty() { "" } else { ";" };
            let begin = format!("{param}{semicolon}{name}{equals}");
            values.iter().map(|value| format!("{begin}{value}")).collect::<Vec<_>>()
        };
        params.iter().flat_map(with).collect()
    })
}

fn powers_of_ten(value: &str) -> Vec<String> {
    let ends = value.split_once("..");
    let ends = ends.and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)));
    let Some((least, most)): Option<(u64, u64)> = ends else { return vec![value.to_owned()] };
    let all = (0..).map(|i| least * 10u64.pow(i)).take_while(|n| *n <= most);
    all.map(|n| n.to_string()).collect()
}

/// `tick=1ms;load=idle` as "tick 1 ms, idle"; `pending=10000` as "10k pending".
pub fn in_words(param: &str) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some(("captures", "0")) => "no captures".to_owned(),
        Some(("captures", "arc")) => "an Arc captured".to_owned(),
        Some(("captures", bytes)) => format!("{bytes} bytes captured"),
        Some(("load", load)) => load.to_owned(),
        Some(("flood", "cancel_ended")) => "cancel what has run".to_owned(),
        Some(("flood", kind)) => kind.replace('_', " and "),
        Some(("future", kind)) => format!("{} future", kind.replace('_', " ")),
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
    use crate::sizes::QUICK;

    #[test]
    fn a_pattern_stands_for_all_its_combinations() {
        let expand = |pattern| expand(pattern, &QUICK, 4);
        assert_eq!(expand("-"), ["-"]);
        assert_eq!(expand("producers=$crew"), ["producers=1", "producers=2", "producers=4"]);
        assert_eq!(expand("a=x|y;b=0|10..100").len(), 6);
        assert_eq!(expand("a=x;timeouts=$fire"), ["a=x;timeouts=5000"]);
    }

    #[test]
    fn params_read_well() {
        for (param, words) in [
            ("producers=1;captures=0", "1 producer, no captures"),
            ("tick=100us;load=busy", "tick 100 µs, busy"),
            ("threads=16;flood=schedule_cancel;timer=same", "16 threads, schedule and cancel"),
            ("pending=10000", "10k pending"),
        ] {
            assert_eq!(in_words(param), words);
        }
    }
}
