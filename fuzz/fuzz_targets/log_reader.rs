//! No line of a log makes the reader panic, and each value that it reads is within its documented range.
#![no_main]

#[path = "../../tests/replay_log/reader.rs"]
#[allow(dead_code)] // the example uses the rest
mod reader;

use libfuzzer_sys::fuzz_target;
use reader::Format;

/// 2400-01-01T00:00:00Z.
const END_OF_TIME: i64 = 13_569_465_600;

fuzz_target!(|line: &[u8]| {
    for format in [Format::Common, Format::NasaTsv] {
        let _ = format.is_header(line);
        match format.parse(line) {
            Ok(record) => {
                assert!(!record.host.is_empty() && !record.host.contains(char::is_whitespace));
                assert!((0..END_OF_TIME).contains(&record.time));
            }
            Err(error) => {
                let text = error.to_string();
                assert!(!text.contains(char::is_control), "speaks to the terminal: {text:?}");
            }
        }
    }
});
