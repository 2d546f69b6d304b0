//! The web page.
//!
//! - `guard`: who may ask, and who may change something
//! - `form`: queries and forms
//! - `app`: what is answered to which request
//! - `page`: the pages; `html`: text in them
//!
//! The page has no script, loads nothing from elsewhere, and each of its pages costs the store a query with a
//! limit. So it can be open all day beside nodes that work.

mod app;
mod form;
mod guard;
mod html;
mod page;

use crate::args::ServeArgs;
use app::App;
use guard::Guard;
use hyper::service::service_fn;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use wheelwork_http::{Hyper, Limits, serve};
use wheelwork_jobs::{Jobs, Store};

/// The variable of the environment that may have the token.
pub(crate) const TOKEN: &str = "WHEELWORK_JOBS_TOKEN";

/// A browser needs a few.
const CONNECTIONS: usize = 64;

/// The page cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(
        "{0} can be reached from other machines: expected a loopback address, or --expose to allow it"
    )]
    Exposed(SocketAddr),
    #[error("changes need a token: pass a file by --token-file, or set the variable {TOKEN}")]
    NoToken,
    #[error("a token of {0} characters: expected at least {least}", least = guard::SHORTEST_TOKEN)]
    ShortToken(usize),
    #[error("cannot read the token in {0:?}: {1}")]
    TokenFile(PathBuf, io::Error),
    #[error("cannot listen at {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error("the server has ended: {0}")]
    Serve(String),
}

/// Serves until SIGINT or SIGTERM.
pub(crate) async fn run<S: Store>(jobs: &Jobs<S>, args: ServeArgs) -> Result<(), ServeError> {
    if !args.listen.ip().is_loopback() && !args.expose {
        return Err(ServeError::Exposed(args.listen));
    }
    let token = match args.allow_changes {
        true => Some(token(args.token_file)?),
        false => None,
    };
    let failed = |error| ServeError::Listen(args.listen, error);
    let listener = TcpListener::bind(args.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    note(&format!("http://{address}/"));
    let app = Arc::new(App::new(jobs.clone(), Guard::new(token, args.host_names)));
    let service = service_fn(move |request| {
        let app = app.clone();
        async move { Ok::<_, std::convert::Infallible>(app.answer(request).await) }
    });
    let limits = Limits::default().connections(CONNECTIONS).handler(Duration::from_secs(20));
    let limits = limits.shutdown(Duration::from_secs(2));
    let serving = serve(listener, Hyper(service), limits).with_graceful_shutdown(stop());
    serving.await.map(drop).map_err(|error| ServeError::Serve(error.to_string()))
}

fn token(file: Option<PathBuf>) -> Result<String, ServeError> {
    let token = match file {
        Some(path) => match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return Err(ServeError::TokenFile(path, error)),
        },
        None => std::env::var(TOKEN).map_err(|_| ServeError::NoToken)?,
    };
    let token = token.trim().to_owned();
    match token.chars().count() {
        short if short < guard::SHORTEST_TOKEN => Err(ServeError::ShortToken(short)),
        _ => Ok(token),
    }
}

/// Tells on standard error, if somebody listens there.
fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Waits for SIGINT or SIGTERM.
async fn stop() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    if let Ok(mut ended) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
    {
        tokio::select! {
            _ = interrupted => {}
            _ = ended.recv() => {}
        }
        return;
    }
    let _ = interrupted.await;
}
