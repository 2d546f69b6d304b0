//! The timer as the sleeper of other crates.

// The files, each behind a feature of its name:
//   backon            retries
//   aws_smithy_async  timeouts and retries of AWS SDKs
#[cfg(feature = "aws-smithy-async")]
mod aws_smithy_async;
#[cfg(feature = "backon")]
mod backon;
