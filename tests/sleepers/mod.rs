//! The timer as the sleeper of other crates, on a manual clock. `examples/plugs` has more of them.

mod aws_smithy_async;
mod backon;
