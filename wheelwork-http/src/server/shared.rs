//! `Shared`: the parts of a server that runs.

use crate::conn::{Desk, Settings};
use crate::request::Executor;
use hyper::server::conn::{http1, http2};
use std::sync::Arc;

pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    pub(super) desk: Arc<Desk>,
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<Executor>,
}
