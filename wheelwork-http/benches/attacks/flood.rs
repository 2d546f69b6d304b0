//! Floods of HTTP/2's control frames, by a client that reads all answers.

use crate::server::Running;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

const TIME: Duration = Duration::from_secs(1);

/// The frames of one write.
const BATCH: usize = 100;

/// The preface, empty SETTINGS, and `GET /` as stream 1.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \0\0\0\x04\0\0\0\0\0\
    \0\0\x0d\x01\x05\0\0\0\x01\x82\x84\x86\x01\x08server:1";

/// Each flood, and its frame.
pub(crate) const EVERY: [(&str, &[u8]); 6] = [
    ("PING", b"\0\0\x08\x06\0\0\0\0\0........"),
    ("SETTINGS", b"\0\0\0\x04\0\0\0\0\0"),
    ("PRIORITY", b"\0\0\x05\x02\0\0\0\0\x01\0\0\0\0\x10"),
    ("WINDOW_UPDATE of 1", b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01"),
    ("RST_STREAM of nothing", b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08"),
    ("unknown type", b"\0\0\0\x42\0\0\0\0\0"),
];

/// A second of a flood on one connection, or on one after the other if the server closes them. Returns the processor
/// time of the server, and the number of connections.
pub(crate) async fn run(server: &Running, frame: &[u8], comes_back: bool) -> (Duration, usize) {
    let before = server.cpu();
    let end = Instant::now() + TIME;
    let mut connections = 0;
    while Instant::now() < end && (comes_back || connections == 0) {
        connections += 1;
        let _ = timeout_at(end, flood(server.http2, frame)).await; // ends by the second's end, or by the server
    }
    sleep(Duration::from_millis(200)).await; // what is still in the socket
    (server.cpu() - before, connections)
}

/// Returns when the server has closed the connection.
async fn flood(server: SocketAddr, frame: &[u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(BEGIN).await?;
    let mut answers = [0; 64 * 1024];
    if stream.read(&mut answers).await? == 0 {
        return Ok(());
    }
    let (mut reader, mut writer) = stream.split();
    let batch = frame.repeat(BATCH);
    let writing = async {
        loop {
            writer.write_all(&batch).await?;
        }
    };
    let reading = async {
        while reader.read(&mut answers).await? > 0 {}
        Ok(())
    };
    tokio::select! {
        ended = writing => ended,
        ended = reading => ended,
    }
}
