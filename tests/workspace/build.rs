//! Looks where the tests of wheelwork-jobs look for PostgreSQL. Collects the programs of the guide that need the companion
//! crates, which the timer's own documentation cannot compile.

use std::path::Path;
use std::{env, fs};

const GUIDE: &str = "../../src/guide";

fn main() {
    println!("cargo::rerun-if-changed={GUIDE}");
    let out = env::var_os("OUT_DIR").expect("Cargo sets it");
    fs::write(Path::new(&out).join("programs.md"), programs()).expect("the folder can be written");
    look_for_postgresql();
}

/// The blocks that the guide does not compile. `wheelwork-http/tests/own_server` has the lines of the one that leaves
/// some out.
fn programs() -> String {
    let mut programs = String::new();
    for chapter in fs::read_dir(GUIDE).expect("the guide is there") {
        let text = fs::read_to_string(chapter.expect("a file").path()).expect("text");
        for program in text.split("```rust,ignore\n").skip(1) {
            let program = program.split("```").next().expect("a split has a first part");
            if !program.lines().any(|line| line.starts_with("// ...")) {
                programs += &format!("```rust,no_run\n{program}```\n\n");
            }
        }
    }
    assert!(!programs.is_empty(), "no program in {GUIDE}");
    programs
}

fn look_for_postgresql() {
    const FOLDER: &str = "/usr/lib/postgresql";
    println!("cargo::rerun-if-changed={FOLDER}");
    let versions = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    if !versions.into_iter().any(|version| version.path().join("bin/postgres").exists()) {
        println!("cargo::rustc-cfg=no_postgresql");
    }
}
