//! Two cases of the comparison at a small size, from the command line to the table.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn a_quick_run_measures_each_case_and_writes_the_table() {
    let only = ["--only", "schedule_cancel,async_sleep", "--rivals", "wheelwork,tokio-sleep"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_comparison"));
    let output = command.arg("--quick").args(only).output().expect("the program starts");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{text:?}");

    let partial = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("results").join("partial");
    let measured = fs::read_to_string(partial.join("measurements.csv")).expect("it was written");
    for rival in ["wheelwork", "tokio-sleep"] {
        for case in ["schedule_cancel,producers=1;captures=16", "async_sleep,tasks=1"] {
            let line = format!("{case},{rival},1,ns_per_op,");
            let value = measured.lines().find_map(|measured| measured.strip_prefix(&line));
            let value: f64 = value.expect(&measured).parse().expect("a number");
            assert!(value > 0.0, "{line}{value}");
        }
    }
    let table = fs::read_to_string(partial.join("table.md")).expect("it was written");
    assert!(table.contains("schedule and cancel") && table.contains("tokio-sleep"), "{table}");
}
