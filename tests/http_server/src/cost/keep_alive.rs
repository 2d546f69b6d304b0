//! A client that makes one request after the other on one connection.

use crate::app::HELLO;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: server\r\n\r\n";

/// More than the header of a response.
const ROOM: usize = 1024;

pub(super) struct KeepAlive {
    stream: TcpStream,
    response: Vec<u8>,
}

impl KeepAlive {
    pub(super) fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, response: vec![0; ROOM] })
    }

    /// Makes a request, and reads its response.
    pub(super) fn request(&mut self) -> io::Result<()> {
        self.stream.write_all(GET)?;
        let mut length = 0;
        // The body ends the response, and is not in its header.
        while !self.response[..length].ends_with(HELLO.as_bytes()) {
            match self.stream.read(&mut self.response[length..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => length += read,
            }
        }
        Ok(())
    }
}
