//! Without a build script, Cargo takes no notice of the build-dependencies.

fn main() {}
