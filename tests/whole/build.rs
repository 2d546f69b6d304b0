//! Sets what the sources are built with for these tests, and for nothing else.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // `HashedWheelTimer::asleep_until`.
    println!("cargo::rustc-cfg=asleep");
    for cfg in ["delays", "shuttle"] {
        if std::env::var_os(format!("CARGO_FEATURE_{}", cfg.to_uppercase())).is_some() {
            println!("cargo::rustc-cfg={cfg}");
        }
    }
}
