//! The examples: the output of the small ones, and the command line of the larger ones.
//! `idle_connections.rs` and `replay_log.rs` test what two of the larger ones do.

use crate::common::examples::{assert_fits, run_example, said, squeezed};

const LARGER: [&str; 2] = ["idle_connections", "replay_log"];

/// Each small example, and what stands in its output whatever the machine's speed.
const SMALL: [(&str, &[&str]); 8] = [
    ("graceful_shutdown", &["start, reminders in the file: 0"]),
    ("heartbeat", &["missed 3", "timeouts left: 0"]),
    ("idle_tokio", &["silent client: closed after", "talking client: closed after"]),
    ("local_loop", &["talking client: three answers", "silent client: closed", "left: 0"]),
    ("request_deadlines", &["small: ", "middling: ", "large: "]),
    ("sleep_tokio", &["quick: Ok(42), slow: Err(Elapsed)", "left when the timer stopped: 0"]),
    ("test_with_manual_clock", &["OK: tested 59 minutes"]),
    ("watchdog", &["the watchdog: ", "a plain timeout: ", "a future: ", "tokio::time: "]),
];

/// Some have clients that talk in time. A busy machine can hold these up, but not in each run.
#[test]
fn the_small_examples_do_what_they_say() {
    for (name, expected) in SMALL {
        let run = || {
            let output = run_example(name, &[]);
            let text = said(&output);
            assert_fits(&text);
            let is_as_expected = expected.iter().all(|part| text.contains(part));
            if output.status.success() && is_as_expected { Ok(()) } else { Err(text) }
        };
        let said = (0..10).map_while(|_| run().err()).collect::<Vec<_>>();
        assert!(said.len() < 10, "{name}: {}", said.concat());
    }
}

#[test]
fn graceful_shutdown_loses_no_reminder() {
    let text = said(&run_example("graceful_shutdown", &[]));
    let counts = |before: &str| -> Vec<usize> {
        let counts = text.lines().filter_map(|line| line.strip_prefix(before));
        counts.map(|count| count.parse().expect("a number")).collect()
    };
    let (loaded, saved) =
        (counts("start, reminders in the file: "), counts("stop, reminders saved: "));
    assert_eq!(loaded[1], saved[0], "{text}");
    assert_eq!(text.matches("reminder: ").count() + saved[1], 3, "{text}");
}

#[test]
fn the_larger_examples_know_their_version() {
    for name in LARGER {
        let output = run_example(name, &["--version"]);
        assert!(output.status.success());
        assert_eq!(said(&output).trim(), format!("{name} {}", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn help_fits_a_terminal_of_80_columns() {
    for name in LARGER {
        let output = run_example(name, &["--help"]);
        assert!(output.status.success());
        assert_fits(&said(&output));
    }
}

#[test]
fn a_number_out_of_range_is_an_error_that_says_what_was_expected() {
    for (name, options, expected) in [
        ("idle_connections", &["--idle-ms=5"][..], "from 100 to 86400000"),
        ("idle_connections", &["--connections=many"], "from 1 to 60000"),
        ("replay_log", &["-", "--idle=0"], "from 1 to 315360000"),
    ] {
        let output = run_example(name, options);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(squeezed(&text).contains(&format!("whole number {expected} ")), "{text}");
        assert_fits(&text);
    }
}
