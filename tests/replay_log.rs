//! The example `replay_log`: every session ends where the log says, whatever the wheel, and whatever
//! cannot be read is named.

mod reader;

use crate::common::examples::{assert_fits, example, said, squeezed};
use proptest::prelude::*;
use reader::{Format, LineError, Record};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const TICKS: [&str; 5] = ["100ms", "700ms", "1s", "60s", "1h"];
const WHEELS: [&str; 3] = ["1", "8", "512"];

fn data(name: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    data.join(name).to_str().expect("a path in UTF-8").to_owned()
}

fn spawn(args: &[&str]) -> Child {
    let mut command = Command::new(example("replay_log"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the example starts")
}

/// Runs the example on a log given by standard input.
fn replay_text(log: impl AsRef<[u8]>, args: &[&str]) -> Output {
    let mut child = spawn(&[&["-"], args].concat());
    let mut stdin = child.stdin.take().expect("piped");
    // A bad argument ends the example before it reads.
    let _ = stdin.write_all(log.as_ref());
    drop(stdin);
    child.wait_with_output().expect("the example ends")
}

fn replay_file(path: &str, args: &[&str]) -> Output {
    spawn(&[&[path], args].concat()).wait_with_output().expect("the example ends")
}

/// What the example says of its run, with line breaks and runs of spaces made one space.
fn stderr(output: &Output) -> String {
    squeezed(&String::from_utf8_lossy(&output.stderr))
}

/// The sessions' lines, with runs of spaces made one.
fn sessions(output: &Output) -> Vec<String> {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let lines = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<String> = lines.lines().map(squeezed).collect();
    lines.sort();
    lines
}

fn common(host: &str, time: &str) -> String {
    format!("{host} - - [17/May/2015:{time} +0000] \"GET / HTTP/1.1\" 200 5\n")
}

#[test]
fn sessions_do_not_depend_on_the_wheel() {
    for (name, format, idle) in
        [("apache_excerpt.log", "common", "20"), ("nasa_excerpt.tsv", "nasa-tsv", "10")]
    {
        let run = |tick, wheel| {
            let wheel = ["--tick", tick, "--ticks-per-wheel", wheel];
            let args = [&["--format", format, "--idle", idle][..], &wheel].concat();
            sessions(&replay_file(&data(name), &args))
        };
        let expected = run("1s", "512");
        assert!(expected.len() > 5, "{expected:?}");
        for tick in TICKS {
            for wheel in WHEELS {
                assert_eq!(run(tick, wheel), expected, "{name}, {tick}, {wheel}");
            }
        }
    }
}

#[test]
fn a_request_at_the_deadline_begins_the_next_session() {
    let log = [common("a", "10:00:00"), common("a", "10:00:59"), common("a", "10:01:59")].concat();
    for tick in TICKS {
        assert_eq!(
            sessions(&replay_text(&log, &["--idle", "60", "--tick", tick])),
            ["2015-05-17T10:01:59Z a 2 requests in 59s", "2015-05-17T10:02:59Z a 1 request in 0s",]
        );
        let one = sessions(&replay_text(&log, &["--idle", "61", "--tick", tick]));
        assert_eq!(one, ["2015-05-17T10:03:00Z a 3 requests in 1m 59s"]);
    }
}

#[test]
fn lines_may_stand_in_any_order() {
    let mut lines = ["10:00:00", "10:00:30", "10:05:00", "10:05:10"].map(|time| common("a", time));
    let expected = sessions(&replay_text(lines.concat(), &["--idle", "60"]));
    assert_eq!(expected.len(), 2);
    lines.reverse();
    let output = replay_text(lines.concat(), &["--idle", "60"]);
    assert_eq!(sessions(&output), expected);
    assert!(stderr(&output).contains("4, 3 out of order"), "{}", stderr(&output));
}

#[test]
fn unreadable_lines_are_named_and_not_fatal() {
    let good = common("a", "10:00:00");
    let log = [&good, "rubbish\n", "\n", &common("b", "25:00:00"), &good, &good].concat();
    let output = replay_text(log, &[]);
    assert_eq!(sessions(&output), ["2015-05-17T10:15:00Z a 3 requests in 0s"]);
    let stderr = stderr(&output);
    for expected in [
        "line 2: expected the client's and the user's name",
        "line 3: expected a request, found an empty line",
        "line 4: expected a time like [17/May/2015:10:05:03 +0000], found \"17/May/2015:25:00:00",
        "3 lines",
    ] {
        assert!(stderr.contains(expected), "{expected}: {stderr}");
    }
}

#[test]
fn only_the_first_unreadable_lines_are_named() {
    let log = "x\n".repeat(1_030) + &common("a", "10:00:00").repeat(1_030);
    let output = replay_text(log, &["--quiet"]);
    let stderr = stderr(&output);
    assert!(sessions(&output).is_empty(), "--quiet prints no session");
    assert!(stderr.contains("line 20: ") && !stderr.contains("line 21: "), "{stderr}");
    assert!(stderr.contains("... and 1,010 more unreadable"), "{stderr}");
}

#[test]
fn a_line_cut_short_in_its_last_field_is_counted_and_named() {
    let output = replay_file(&data("apache_excerpt.log"), &[]);
    assert!(sessions(&output).iter().any(|line| line.ends_with(" 10.0.4.44 3 requests in 31s")));
    assert!(stderr(&output).contains("line 22: cut short"), "{}", stderr(&output));
}

/// What the example says when it refuses `log`.
fn refusal(log: impl AsRef<[u8]>) -> String {
    let output = replay_text(log, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn a_log_without_requests_is_refused() {
    for empty in ["", "\u{feff}"] {
        assert!(refusal(empty).contains("found no line in it"));
    }
}

#[test]
fn a_log_of_mostly_unreadable_lines_is_refused() {
    let bad = "rubbish\n".repeat(5_000) + &common("a", "10:00:00").repeat(2);
    let said = refusal(bad);
    assert!(said.contains("found 5,000 of 5,002 unreadable; line 1: expected"), "{said}");
    let half = "rubbish\n".repeat(5) + &common("a", "10:00:00").repeat(5);
    assert_eq!(sessions(&replay_text(half, &[])).len(), 1, "half of it is enough");
}

#[test]
fn a_compressed_log_is_refused_with_a_hint() {
    let said = refusal(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03");
    assert!(said.contains("found gzip") && said.contains("zcat"), "{said}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_host() {
    let log = "\u{feff}".to_owned() + &common("a", "10:00:00").repeat(2);
    assert_eq!(sessions(&replay_text(log, &[])), ["2015-05-17T10:15:00Z a 2 requests in 0s"]);
    let nasa = std::fs::read_to_string(data("nasa_excerpt.tsv")).expect("it is there");
    let output = replay_text("\u{feff}".to_owned() + &nasa, &["--format", "nasa-tsv"]);
    assert!(stderr(&output).contains("unreadable 0 lines"), "the header: {}", stderr(&output));
}

#[test]
fn hosts_that_are_not_utf8_stay_distinct() {
    let line = common("?", "10:00:00").into_bytes();
    let hosts = [0xff, 0xfe].map(|byte| [&[byte], &line[1..]].concat());
    let expected =
        [r"\xfe", r"\xff"].map(|host| format!("2015-05-17T10:15:00Z {host} 1 request in 0s"));
    assert_eq!(sessions(&replay_text(hosts.concat(), &[])), expected);
}

#[test]
fn one_of_a_kind_is_said_in_the_singular() {
    let output = replay_text(common("a", "10:00:00") + &common("b", "10:00:00") + "x\n", &[]);
    assert!(stderr(&output).contains("unreadable 1 line "), "{}", stderr(&output));
    let said = stderr(&replay_text(common("a", "10:00:00"), &[]));
    assert!(said.ends_with("OK: the only session ends exactly where the log says"), "{said}");
}

#[test]
fn what_is_said_fits_a_terminal_of_80_columns() {
    let long = "rubbish that is longer than the terminal is wide, when it is quoted\n";
    for output in [
        replay_file(&data("apache_excerpt.log"), &["--sabotage", "shift"]),
        replay_file(&data("nasa_excerpt.tsv"), &[]),
        replay_text((common("a", "10:00:00") + long).repeat(1_000), &[]),
    ] {
        assert_fits(&said(&output));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_wheel_without_memory_says_so() {
    let (example, log) = (example("replay_log"), data("apache_excerpt.log"));
    let script = format!(
        "ulimit -v 2000000 && exec '{}' '{log}' --ticks-per-wheel 1073741824",
        example.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().expect("sh starts");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot allocate 1073741824 buckets"));
}

/// What the system says.
const NO_FILE: &str = if cfg!(windows) { "os error" } else { "No such file" };

#[test]
fn bad_input_is_named_with_what_was_expected() {
    let nasa = data("nasa_excerpt.tsv");
    for (args, expected) in [
        (&["/no/such.log"][..], &["/no/such.log", NO_FILE, "expected a web"][..]),
        (&[&nasa], &["nasa_excerpt.tsv", "Common", "line 1: ", "try --format nasa-tsv"]),
        (&[&nasa, "--idle", "0"], &["'0'", "--idle", "from 1 to 315360000"]),
        (&[&nasa, "--idle", "-1"], &["'-1'", "--idle", "from 1 to 315360000"]),
        (&[&nasa, "--tick", "5"], &["'5'", "--tick", "us, ms, s, m, h"]),
        (
            &[&nasa, "--format", "nasa-tsv", "--ticks-per-wheel", "0"],
            &["'0'", "--ticks-per-wheel", "from 1 to 1073741824"],
        ),
    ] {
        let output = replay_file(args[0], &args[1..]);
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        expected.iter().for_each(|part| assert!(stderr.contains(part), "{part}: {stderr}"));
    }
}

#[test]
fn the_check_finds_what_is_false() {
    for (sabotage, found) in
        [("drop", "1 difference "), ("double", "1 difference "), ("shift", "2 differences ")]
    {
        let output = replay_file(&data("apache_excerpt.log"), &["--sabotage", sabotage]);
        assert_eq!(output.status.code(), Some(1), "{sabotage}");
        assert!(stderr(&output).contains(&format!("FAILED: {found}")), "{}", stderr(&output));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    // More than a pipe holds, so that writing fails while the replay is still going on.
    let hosts = (0..5_000).map(|n| common(&format!("host-{n}"), "10:00:00"));
    let mut child = spawn(&["-"]);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(hosts.collect::<String>().as_bytes()).expect("the example reads it all");
    drop(stdin);
    let output = child.wait_with_output().expect("the example ends");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("OK: all 5,000 sessions"), "{}", stderr(&output));
}

fn read(line: &str) -> Result<Record, LineError> {
    Format::Common.parse(line.as_bytes())
}

#[test]
fn common_and_combined_lines_are_read() {
    for line in [
        r#"::1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"::1 - - [17/May/2015:12:05:03 +0200] "GET / HTTP/1.1" 304 -"#,
        r#"::1 - - [17/May/2015:04:35:03 -0530] "-" 408 - "-" "-""#,
        r#"::1 id Jane Doe [17/May/2015:10:05:03 +0000] "GET /\"x\\" 200 5 "-" "a \"b\" c""#,
        "::1 - - [17/May/2015:10:05:03 +0000] \"GET /a\"b HTTP/1.0\" - 5 \"\" \"\"\r\n",
    ] {
        let record = Record { host: "::1".into(), time: 1_431_857_103, is_cut_short: false };
        assert_eq!(read(line), Ok(record), "{line}");
    }
    for virtual_host in ["www.example.org:443", "[::1]:80", "www.example.org"] {
        for client in ["::1", "10.0.0.7"] {
            let line = common(&format!("{virtual_host} {client}"), "10:05:03");
            assert_eq!(read(&line).map(|record| record.host).as_deref(), Ok(client), "{line}");
        }
    }
    let named = common("www.example.org:80 a.com", "10:05:03");
    assert_eq!(read(&named).map(|record| record.host).as_deref(), Ok("a.com"));
    let cut = r#"h - - [17/May/2015:10:05:03 +0000] "GET /" 200 5 "-" "Mozil"#;
    assert!(read(cut).is_ok_and(|record| record.is_cut_short));
    let latin1 = b"h - - [17/May/2015:10:05:03 +0000] \"GET /\xe9\" 200 5";
    assert!(Format::Common.parse(latin1).is_ok());
}

#[test]
fn a_line_must_have_the_whole_shape() {
    let at = |rest: &str| read(&format!("h - - [17/May/2015:10:05:03 +0000] {rest}"));
    assert!(matches!(read(" - - [x] "), Err(LineError::Host(_))));
    assert!(matches!(read("h - [x] "), Err(LineError::Names(_))));
    assert!(matches!(read("h - - [30/Feb/2015:10:05:03 +0000] \"\""), Err(LineError::Time(_))));
    assert!(matches!(read("h - - [17/May/1915:10:05:03 +0000] \"\""), Err(LineError::Range(_))));
    assert!(matches!(at("GET /"), Err(LineError::Request(_))));
    assert!(matches!(at("\"GET /"), Err(LineError::Request(_))));
    assert!(matches!(at("\"GET /\""), Err(LineError::Status(_))));
    assert!(matches!(at("\"GET /\" 2000 5"), Err(LineError::Status(_))));
    assert!(matches!(at("\"GET /\" 200 5k"), Err(LineError::Bytes(_))));
    assert!(matches!(at("\"GET /\" 200 5 -"), Err(LineError::Referer(_))));
    assert!(matches!(at("\"GET /\" 200 5 \"-\" -"), Err(LineError::UserAgent(_))));
    assert!(matches!(at("\"GET /\" 200 5 \"-\""), Err(LineError::UserAgent(_))));
    assert!(matches!(at("\"GET /\" 200 5 \"-\" \"-\" 7"), Err(LineError::Trailing(_))));
}

#[test]
fn nasa_lines_are_read() {
    let read = |line: &str| Format::NasaTsv.parse(line.as_bytes());
    let record = Record { host: "a.com".into(), time: 807_256_800, is_cut_short: false };
    assert_eq!(read("a.com\t-\t807256800\tGET\t/\t200\t1713\t\t\r\n"), Ok(record));
    assert!(matches!(read("a\t-\tsoon\tGET\t/\t200\t1\t\t"), Err(LineError::Seconds(_))));
    assert!(matches!(read("a\t-\t-1\tGET\t/\t200\t1\t\t"), Err(LineError::Range(_))));
    assert!(matches!(read("a b"), Err(LineError::Columns { columns: 1, .. })));
    assert!(
        Format::NasaTsv.is_header(
            b"host\tlogname\ttime\tmethod\turl\tresponse\tbytes\treferer\tuseragent\r\n"
        )
    );
}

/// Fragments of which lines are made, so that chance gets deep into the parser.
fn near_line() -> impl Strategy<Value = Vec<u8>> {
    const FRAGMENTS: &[&str] = &[
        "h",
        " ",
        " - - ",
        "[",
        "17/May/2015:10:05:03 +0000",
        "] ",
        "\"",
        "\\",
        "\"GET /\" ",
        "200 ",
        "5",
        "-",
        "\t",
        "807256800",
        "é",
        "\r\n",
        "99999999999999999999",
    ];
    proptest::collection::vec(proptest::sample::select(FRAGMENTS), 0..24)
        .prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(
        bytes in prop_oneof![proptest::collection::vec(any::<u8>(), 0..400), near_line()]
    ) {
        for format in [Format::Common, Format::NasaTsv] {
            if let Err(error) = format.parse(&bytes) {
                // An excerpt has up to 60 columns, an ellipsis and quotes.
                prop_assert!(error.to_string().chars().count() < 90 + 63, "{error}");
            }
        }
    }
}
