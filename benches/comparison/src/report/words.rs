//! How figures and metrics are written.

/// What a metric is called, with its unit.
pub fn metric(metric: &str) -> String {
    let fixed = match metric {
        "ns_per_op" => "ns per operation",
        "cpu_ns_per_op" => "CPU ns per operation",
        "cpu_percent" => "% of a core",
        "wakeups_per_s" => "wake-ups per second",
        "rss_mib_after" => "resident, MiB",
        "heap_mib_after" => "heap in use, MiB",
        "with_its_threads" => "bytes per timeout, stacks and arenas included",
        _ => "",
    };
    if !fixed.is_empty() {
        return fixed.to_owned();
    }
    let name = metric.replace("p999", "p99.9").replace('_', " ");
    match name.rsplit_once(' ') {
        Some((name, unit @ ("ns" | "ms"))) => format!("{name}, {unit}"),
        Some((name, "us")) => format!("{name}, µs"),
        _ => name,
    }
}

/// Three significant digits; whole numbers, and what is larger, in full.
pub fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size.fract() == 0.0 => 0,
        _ if size < 0.0001 => return "<0.0001".to_owned(),
        _ if size < 0.0095 => 4,
        _ if size < 0.9995 => 3,
        _ if size < 9.995 => 2,
        _ if size < 99.95 => 1,
        _ => 0,
    };
    let mut digits = format!("{value:.decimals$}");
    if decimals > 2 {
        digits = digits.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let whole = digits.find('.').unwrap_or(digits.len());
    for comma in (1..whole).rev().filter(|place| (whole - place).is_multiple_of(3)) {
        if digits.as_bytes()[comma - 1] != b'-' {
            digits.insert(comma, ',');
        }
    }
    digits
}

/// In full: the ticks of a long scale are smaller than the figures.
pub fn tick(value: f64) -> String {
    if value < 1.0 { ((value * 1e9).round() / 1e9).to_string() } else { number(value) }
}

/// As "1.8x"; `None` where it has no meaning: a quotient with next to nothing has none.
pub fn ratio(metric: &str, value: f64, base: f64) -> Option<String> {
    let units = ["_op", "_ns", "_us", "_ms", "_timeout"];
    let has_meaning = units.iter().any(|unit| metric.ends_with(unit)) && value > 0.0 && base > 0.0;
    has_meaning.then(|| factor(value / base))
}

/// Two digits: the figures do not bear more.
pub fn factor(ratio: f64) -> String {
    match ratio {
        _ if ratio < 0.0095 => "<0.01x".to_owned(),
        _ if ratio < 0.95 => format!("{ratio:.2}x"),
        _ if ratio < 9.95 => format!("{ratio:.1}x"),
        _ => format!("{}x", number(ratio.round())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_are_never_cut() {
        let values = [0.0, 0.00003, 0.0304, 9.99, 12.34, 123.4, 1_234_567.8, -450.0];
        let written = ["0", "<0.0001", "0.03", "9.99", "12.3", "123", "1,234,568", "-450"];
        assert_eq!(values.map(number), written);
    }

    #[test]
    fn ratios_are_rounded_and_never_of_nothing() {
        let ratio = |value, base| ratio("ns_per_op", value, base);
        assert_eq!([ratio(3.0, 2.0), ratio(2500.0, 2.0)].map(Option::unwrap), ["1.5x", "1,250x"]);
        assert_eq!(ratio(3.0, 0.0), None);
        assert_eq!(super::ratio("rss_mib_after", 2400.0, 0.001), None);
    }
}
