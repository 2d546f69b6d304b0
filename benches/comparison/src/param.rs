//! A param: `name=value;name=value`, or `-` for none.

use crate::sizes::Sizes;
use itertools::Itertools;

/// Empty if there is no such name.
pub fn value<'a>(param: &'a str, name: &str) -> &'a str {
    let mut pairs = param.split(';').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
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
    let crew = (0..).map(|n| 1u64 << n).take_while(|n| *n <= cores.max(2)).join("|");
    let mut pattern = pattern.replace("$crew", &crew);
    for (name, size) in sizes.by_name() {
        pattern = pattern.replace(&format!("${name}"), &size.to_string());
    }
    let alternatives = |part: &str| {
        let (name, values) = part.split_at(part.find('=').map_or(0, |equals| equals + 1));
        let values = values.split('|').flat_map(powers_of_ten);
        values.map(|value| format!("{name}{value}")).collect_vec()
    };
    let parts = pattern.split(';').map(alternatives);
    parts.multi_cartesian_product().map(|parts| parts.join(";")).collect()
}

fn powers_of_ten(value: &str) -> Vec<String> {
    let Some((least, most)) = value.split_once("..") else { return vec![value.to_owned()] };
    let [least, most] = [least, most].map(|end| end.parse::<u64>().expect("a range of numbers"));
    (0..).map(|i| least * 10u64.pow(i)).take_while(|n| *n <= most).map(|n| n.to_string()).collect()
}

/// `tick=1ms;load=idle` as "tick 1 ms, idle"; `pending=10000` as "10k pending".
pub fn in_words(param: &str) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some(("captures", "0")) => "no captures".to_owned(),
        Some(("captures", "arc")) => "an Arc captured".to_owned(),
        Some(("captures", bytes)) => format!("{bytes} bytes captured"),
        Some(("load", load)) => load.to_owned(),
        Some(("beat", kind)) => kind.replace('_', " "),
        Some(("flood", "cancel_ended")) => "cancel what has run".to_owned(),
        Some(("flood", kind)) => kind.replace('_', " and "),
        Some(("future", kind)) => format!("{} future", kind.replace('_', " ")),
        Some(("tick", tick)) => format!("tick {}", tick.replace("us", " µs").replace("ms", " ms")),
        Some((things, "1")) => format!("1 {}", things.trim_end_matches('s')),
        Some((name, value)) => format!("{} {name}", count_in_words(value.parse().unwrap_or(0))),
        None => part.to_owned(),
    };
    param.split(';').filter(|part| ![OWN_TIMER, CONTROL].contains(part)).map(part).join(", ")
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
        assert_eq!(expand("a=x|y;b=0|10..100;n=$fire").len(), 6);
        assert_eq!(expand("a=x;timeouts=$fire"), ["a=x;timeouts=5000"]);
    }
}
