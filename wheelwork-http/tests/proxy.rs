//! The PROXY protocol on real sockets: whose address a request has, and who is closed.

#[path = "limits/app.rs"]
#[allow(dead_code)]
mod app;

use app::app;
use hyper::service::service_fn;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use wheelwork_http::{
    Handshake, Hyper, Limit, Limits, Listener, Peer, Proxied, RequestBody, Server, serve,
};

const GET: &[u8] = b"GET /peer HTTP/1.1\r\nhost: server\r\nconnection: close\r\n\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = (rest.len() as u16).to_be_bytes();
    [V2, &[command, family], &length, rest].concat()
}

async fn start(limits: Limits, proxy: &str) -> (SocketAddr, Server) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Proxied::new(listener, [proxy.parse().unwrap()]);
    (address, start_with(limits, listener))
}

fn start_with(limits: Limits, listener: impl Listener) -> Server {
    let service = Hyper(service_fn(|request: http::Request<RequestBody>| app(request)));
    let serving = serve(listener, service, limits).tell_peer();
    let server = serving.server();
    tokio::spawn(async { serving.await.unwrap() });
    server
}

/// Names an address of each connection before the proxy does.
struct Named(Proxied<TcpListener>);

impl Listener for Named {
    type Handshake = <Proxied<TcpListener> as Listener>::Handshake;

    async fn accept(&mut self) -> io::Result<(<Self::Handshake as Handshake>::Future, Peer)> {
        let (handshake, _) = self.0.accept().await?;
        Ok((handshake, Peer::Tcp("192.0.2.1:99".parse().unwrap())))
    }
}

/// Sends a header and a request. Returns the answer, which is empty if the connection was closed.
async fn answer(address: SocketAddr, header: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut answer = String::new();
    let _ = stream.write_all(&[header, GET].concat()).await;
    let _ = stream.read_to_string(&mut answer).await; // a reset is an end, too
    answer
}

#[tokio::test]
async fn a_request_has_the_address_that_the_proxy_tells() {
    let (address, _) = start(Limits::default(), "127.0.0.1").await;
    let v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0x12, 0x34, 0, 80];
    let v6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[7], &[0; 16], &[0, 99, 0, 80], b"\x04\0\x01x"];
    for (header, client) in [
        (b"PROXY TCP4 192.0.2.1 10.0.0.1 4660 80\r\n".to_vec(), "192.0.2.1:4660"),
        (b"PROXY TCP6 2001:db8::7 ::1 99 80\r\n".to_vec(), "[2001:db8::7]:99"),
        (v2(0x21, 0x11, &v4), "192.0.2.1:4660"),
        (v2(0x21, 0x21, &v6.concat()), "[2001:db8::7]:99"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1:"),
        (b"PROXY UNKNOWN and more\r\n".to_vec(), "127.0.0.1:"),
        (v2(0x20, 0, &[]), "127.0.0.1:"),
        (v2(0x21, 0, &[9; 5]), "127.0.0.1:"),
    ] {
        let answer = answer(address, &header).await;
        assert!(answer.contains(&format!("\r\n\r\n{client}")), "{client}: {answer}");
    }
}

#[tokio::test]
async fn a_header_may_come_byte_by_byte() {
    let (address, _) = start(Limits::default(), "127.0.0.1").await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in [b"PROXY TCP4 192.0.2.1 10.0.0.1 4660 80\r\n", GET].concat() {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("192.0.2.1:4660"), "{answer}");
}

#[tokio::test]
async fn anything_else_is_closed() {
    let (address, _) = start(Limits::default(), "127.0.0.1").await;
    for header in [
        b"".to_vec(),
        b"PROXY TCP4 2001:db8::7 ::1 99 80\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.1 10.0.0.1 4660\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.1 10.0.0.1 4660 80 1\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.1 10.0.0.1 66000 80\r\n".to_vec(),
        [&b"PROXY UNKNOWN "[..], &[b'x'; 200], b"\r\n"].concat(),
        v2(0x21, 0x11, &[1; 11]),
        v2(0x21, 0x21, &[1; 35]),
        v2(0x21, 0x31, &[1; 216]),
        v2(0x31, 0x11, &[1; 12]),
        v2(0x20, 0, &[1; 2049]),
    ] {
        let text = String::from_utf8_lossy(&header).into_owned();
        assert_eq!(answer(address, &header).await, "", "{text}");
    }
    let (address, _) = start(Limits::default(), "127.0.0.2").await;
    assert_eq!(answer(address, b"PROXY TCP4 192.0.2.1 10.0.0.1 4660 80\r\n").await, "");
}

/// Two connections of one client are one too many, however many the proxy has.
#[tokio::test]
async fn connections_are_counted_by_the_clients_address() {
    let limits = Limits::default().connections_per_address(1);
    let (address, server) = start(limits, "127.0.0.1").await;
    let header = |client| format!("PROXY TCP4 192.0.2.{client} 10.0.0.1 4660 80\r\n").into_bytes();
    let mut first = TcpStream::connect(address).await.unwrap();
    first
        .write_all(&[&header(1)[..], b"GET / HTTP/1.1\r\nhost: server\r\n\r\n"].concat())
        .await
        .unwrap();
    assert!(first.read(&mut [0; 1024]).await.unwrap() > 0);
    assert_eq!(answer(address, &header(1)).await, "");
    assert_eq!(server.cuts(Limit::ConnectionsPerAddress), 1);
    assert!(answer(address, &header(2)).await.contains("192.0.2.2"));
    drop(first);
    while server.connections() > 0 {
        tokio::task::yield_now().await;
    }
    assert!(answer(address, &header(1)).await.contains("192.0.2.1"));
}

/// It counts once, for the address of which it is now.
#[tokio::test]
async fn a_connection_whose_handshake_names_another_address_leaves_no_count() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Proxied::new(listener, ["127.0.0.1".parse().unwrap()]);
    let server = start_with(Limits::default().connections_per_address(1), Named(listener));
    for client in [2, 3, 1, 1, 2] {
        let header = format!("PROXY TCP4 192.0.2.{client} 10.0.0.1 4660 80\r\n");
        let answer = answer(address, header.as_bytes()).await;
        assert!(answer.ends_with(&format!("192.0.2.{client}:4660")), "{client}: {answer}");
        while server.connections() > 0 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(server.cuts(Limit::ConnectionsPerAddress), 0);
}

/// While one proxy is silent, others are served.
#[tokio::test]
async fn a_header_that_does_not_end_has_the_limit_of_the_handshake() {
    let limits = Limits::default().handshake(Duration::from_millis(300));
    let (address, server) = start(limits, "127.0.0.1").await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    silent.write_all(b"PROXY TCP4 ").await.unwrap();
    assert_ne!(answer(address, b"PROXY UNKNOWN\r\n").await, "");
    assert_eq!(silent.read(&mut [0; 9]).await.unwrap_or(0), 0);
    assert_eq!(server.cuts(Limit::Handshake), 1);
}

/// A stranger takes no place, so nobody makes room for it. All of 127.0.0.0/8 is the machine's own on Linux.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_from_elsewhere_makes_nobody_leave() {
    let (address, server) = start(Limits::default().connections(1), "127.0.0.1").await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"PROXY UNKNOWN\r\nGET / HTTP/1.1\r\nhost: server\r\n\r\n").await.unwrap();
    assert!(client.read(&mut [0; 1024]).await.unwrap() > 0);
    for _ in 0..20 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut stranger = socket.connect(address).await.unwrap();
        assert_eq!(stranger.read(&mut [0; 9]).await.unwrap_or(0), 0);
    }
    assert_eq!(server.cuts(Limit::Connections), 0);
    client.write_all(GET).await.unwrap();
    assert!(client.read(&mut [0; 1024]).await.unwrap() > 0);
}
