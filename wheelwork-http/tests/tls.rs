//! TLS, and Unix sockets, on a clock that stands still.

use hyper::service::service_fn;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
#[cfg(target_os = "linux")]
use tokio::net::TcpSocket;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::yield_now;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use wheelwork::{HashedWheelTimer, ManualClock};
use wheelwork_http::{Hyper, Limit, Limits, Listener, RequestBody, Server, Tls, serve};

const SECOND: Duration = Duration::from_secs(1);
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
const CERTIFICATE: &[u8] = include_bytes!("data/certificate.pem");
const KEY: &[u8] = include_bytes!("data/key.pem");

async fn hello(request: http::Request<RequestBody>) -> Result<http::Response<String>, Infallible> {
    let is_large = request.uri().path() == "/large";
    Ok(http::Response::new(if is_large { "a".repeat(20_000_000) } else { "hello".into() }))
}

/// Serves on a listener with a handshake limit of 7 s and an idle limit of 40 s.
fn start(listener: impl Listener) -> (ManualClock, Server) {
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let limits = Limits::default().handshake(7 * SECOND).idle(40 * SECOND);
    let serving = serve(listener, Hyper(service_fn(hello)), limits).timer(&timer);
    let server = serving.server();
    tokio::spawn(async { serving.await.unwrap() });
    (clock, server)
}

fn on_a_runtime(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(test);
}

/// Lets all tasks act on what the sockets have. The kernel may need a moment to bring bytes from one end to the other.
async fn settle() {
    for _ in 0..64 {
        yield_now().await;
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// A server with TLS, and a socket that is connected to it.
async fn tls_server() -> (ManualClock, Server, TcpStream) {
    let (clock, server, address) = tls_listener().await;
    let socket = TcpStream::connect(address).await.unwrap();
    settle().await;
    (clock, server, socket)
}

async fn tls_listener() -> (ManualClock, Server, SocketAddr) {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (clock, server) = start(Tls::new(listener, Arc::new(config)));
    (clock, server, address)
}

async fn shake_hands(socket: TcpStream) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), socket).await.unwrap()
}

#[test]
fn a_handshake_that_does_not_begin_is_closed() {
    on_a_runtime(async {
        let (clock, server, mut socket) = tls_server().await;
        clock.advance_in_one_jump(7 * SECOND - Duration::from_millis(1));
        settle().await;
        assert_eq!(server.connections(), 1);
        clock.advance_in_one_jump(SECOND);
        assert_eq!(socket.read(&mut [0; 9]).await.unwrap(), 0);
        assert_eq!(server.cuts(Limit::Handshake), 1);
    });
}

#[test]
fn the_first_byte_must_come_within_the_limit_of_the_handshake() {
    on_a_runtime(async {
        let (clock, server, socket) = tls_server().await;
        clock.advance_in_one_jump(6 * SECOND);
        let mut client = shake_hands(socket).await;
        settle().await;
        clock.advance_in_one_jump(SECOND);
        assert!(!matches!(client.read(&mut [0; 9]).await, Ok(1..)));
        assert_eq!(server.cuts(Limit::Handshake), 1);
    });
}

#[test]
fn requests_over_tls_are_answered_and_an_idle_connection_is_closed() {
    on_a_runtime(async {
        let (clock, server, socket) = tls_server().await;
        clock.advance_in_one_jump(6 * SECOND);
        let mut client = shake_hands(socket).await;
        for _ in 0..3 {
            client.write_all(GET).await.unwrap();
            let mut answer = [0; 1024];
            let read = client.read(&mut answer).await.unwrap();
            assert!(answer[..read].ends_with(b"hello"));
            settle().await;
            clock.advance_in_one_jump(39 * SECOND);
            settle().await;
        }
        clock.advance_in_one_jump(SECOND);
        assert_eq!(client.read(&mut [0; 9]).await.unwrap(), 0, "with close_notify");
        assert_eq!(server.cuts(Limit::Idle), 1);
    });
}

/// It reads 1,000 bytes each second, in records of TLS. The system of the server accepts nothing for a minute or more.
#[cfg(target_os = "linux")]
#[test]
fn a_slow_client_over_tls_is_spared() {
    const RECORD: usize = 16 * 1024;
    on_a_runtime(async {
        let (clock, server, address) = tls_listener().await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut client = shake_hands(socket.connect(address).await.unwrap()).await;
        client.write_all(b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        settle().await;
        for _ in 0..30 {
            client.read_exact(&mut [0; RECORD]).await.unwrap();
            settle().await;
            clock.advance_in_one_jump(16 * SECOND);
            settle().await;
            assert_eq!(Limit::EVERY.map(|limit| server.cuts(limit)), [0; Limit::EVERY.len()]);
        }
        while server.cuts(Limit::Response) + server.cuts(Limit::ResponseRate) == 0 {
            clock.advance_in_one_jump(16 * SECOND); // it has stopped
            settle().await;
        }
    });
}

#[test]
fn a_unix_socket_has_the_same_limits() {
    on_a_runtime(async {
        let path = std::env::temp_dir().join(format!("wheelwork-http-{}", std::process::id()));
        let (clock, server) = start(UnixListener::bind(&path).unwrap());
        let mut client = UnixStream::connect(&path).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        client.write_all(GET).await.unwrap();
        let mut answer = [0; 1024];
        let read = client.read(&mut answer).await.unwrap();
        assert!(answer[..read].ends_with(b"hello"));
        settle().await;
        clock.advance_in_one_jump(40 * SECOND);
        assert_eq!(client.read(&mut answer).await.unwrap(), 0);
        assert_eq!(server.cuts(Limit::Idle), 1);
    });
}
