//! gRPC and gRPC-Web: which requests are calls, and the deadline of the caller.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use std::time::Duration;

/// The content types of calls. One that begins with another comes before it.
const KINDS: [&str; 5] = [
    "application/grpc-web-text",
    "application/grpc-web+json",
    "application/grpc-web",
    "application/grpc+json",
    "application/grpc",
];

/// The content type of an answer, if this is the header of a call: a client of gRPC-Web takes no other.
pub(super) fn kind(headers: &HeaderMap) -> Option<&'static str> {
    let kind = headers.get(CONTENT_TYPE)?.as_bytes();
    KINDS.into_iter().find(|known| kind.starts_with(known.as_bytes()))
}

/// How long the caller waits, by `grpc-timeout`: at most eight digits and a unit. Anything else is no deadline.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let (unit, digits) = headers.get("grpc-timeout")?.as_bytes().split_last()?;
    if digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &str) -> Option<Duration> {
        timeout(&HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), value.parse().unwrap())]))
    }

    #[test]
    fn each_unit_is_known() {
        let units = [("2H", 7_200_000_000_000), ("2M", 120_000_000_000), ("2S", 2_000_000_000)];
        let parts = [("2m", 2_000_000), ("2u", 2_000), ("2n", 2), ("0S", 0)];
        for (value, nanos) in units.into_iter().chain(parts) {
            assert_eq!(parse(value), Some(Duration::from_nanos(nanos)), "{value}");
        }
        assert_eq!(parse("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
    }

    #[test]
    fn what_is_no_timeout_is_no_deadline() {
        for value in ["", "S", "1", "1s", "-1S", "+1S", "1.5S", "123456789S", " 1S"] {
            assert_eq!(parse(value), None, "{value}");
        }
    }
}
