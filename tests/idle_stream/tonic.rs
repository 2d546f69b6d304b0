//! tonic's server takes a stream with idle timeouts.

use crate::common::manual;
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::server::Connected;
use wheelwork::idle::{IdlePolicy, IdleStreams};

#[tokio::test]
async fn a_stream_tells_tonic_the_addresses_of_its_socket() {
    let (timer, _clock) = manual();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(address).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let stream = IdleStreams::new(&timer).wrap(socket, &IdlePolicy::new()).unwrap();
    let info = stream.connect_info();
    assert_eq!(info.local_addr(), Some(address));
    assert_eq!(info.remote_addr(), client.local_addr().ok());
}
