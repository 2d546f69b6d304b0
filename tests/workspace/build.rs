//! Looks where the tests of wheelwork-jobs look for PostgreSQL.

fn main() {
    const FOLDER: &str = "/usr/lib/postgresql";
    println!("cargo::rerun-if-changed={FOLDER}");
    let versions = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    if !versions.into_iter().any(|version| version.path().join("bin/postgres").exists()) {
        println!("cargo::rustc-cfg=no_postgresql");
    }
}
