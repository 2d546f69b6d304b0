//! How the tests start the examples and read what they say.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The example of that name. Cargo builds the examples next to the tests.
#[track_caller]
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its path");
    let profile = test.ancestors().nth(2).expect("a test lies in target/<profile>/deps");
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let example = profile.join("examples").join(name);
    assert!(example.exists(), "`cargo test` builds {}, `--test` alone does not", example.display());
    example
}

/// Runs the example to its end.
#[track_caller]
pub fn run_example(name: &str, options: &[&str]) -> Output {
    Command::new(example(name)).args(options).output().expect("the example starts")
}

/// The output and then the error output.
pub fn said(output: &Output) -> String {
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    said.concat()
}

/// `text` with each line break and run of spaces made one space.
pub fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Fails unless each line of `text` fits a terminal of 80 columns.
#[track_caller]
pub fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
