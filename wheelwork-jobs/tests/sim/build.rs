//! Sets what the sources are built with for these tests, and for nothing else.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // `Jobs::holds` and `Connector::through`.
    println!("cargo::rustc-cfg=simulated");
}
