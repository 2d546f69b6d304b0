//! Servers that answer the same, with all limits and with none.

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use tokio::net::TcpListener;
use tokio::runtime;
use wheelwork_http::{Hyper, Limits, serve};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// hyper-util's server without any limit.
    Hyper,
    /// All limits on.
    Limited,
}

/// Waits once on `/wait`, so that the handler's limit is armed.
async fn app<B>(request: http::Request<B>) -> Result<http::Response<String>, Infallible> {
    if request.uri().path() == "/wait" {
        tokio::task::yield_now().await;
    }
    Ok(http::Response::new("hello".into()))
}

/// Runs a server on a thread of its own, until the process ends.
pub fn start(which: Which) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    thread::spawn(move || {
        runtime.block_on(async {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            match which {
                Which::Hyper => without_limits(listener).await,
                Which::Limited => {
                    let limits = Limits::default().connections(100_000);
                    let limits = limits.connections_per_address(100_000);
                    let _ = serve(listener, Hyper(service_fn(app)), limits).await;
                }
            }
        });
    });
    Ok(address)
}

async fn without_limits(listener: TcpListener) {
    let http = auto::Builder::new(TokioExecutor::new());
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        let http = http.clone();
        tokio::spawn(async move {
            let _ =
                http.serve_connection_with_upgrades(TokioIo::new(socket), service_fn(app)).await;
        });
    }
}

/// A client that makes one request after the other on one connection.
pub struct KeepAlive(TcpStream);

impl KeepAlive {
    pub fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    pub fn request(&mut self, path: &str) -> io::Result<()> {
        write!(self.0, "GET {path} HTTP/1.1\r\nhost: server\r\n\r\n")?;
        let mut response = [0; 1024];
        let mut length = 0;
        while !response[..length].ends_with(b"hello") {
            match self.0.read(&mut response[length..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => length += read,
            }
        }
        Ok(())
    }
}
