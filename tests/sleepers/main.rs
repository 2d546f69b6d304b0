//! The timer as the sleeper of other crates, on a manual clock. `examples/plugs` has more of them.

mod aws_smithy_async;
mod backon;
#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code)] // each test program uses a part of it
#[path = "../future/wakers.rs"]
mod wakers;
