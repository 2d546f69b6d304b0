//! Idle connections on tokio: `cargo run --example idle_tokio`. For production,
//! `idle_connections/tokio_server.rs` also looks for unread bytes before it closes.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{self, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts, Watch};

async fn serve(listener: TcpListener, idle: IdleTimeouts<Arc<Notify>>) -> io::Result<()> {
    let policy = IdlePolicy::new().reader(Duration::from_secs(1));
    loop {
        let (stream, _) = listener.accept().await?;
        let is_idle = Arc::new(Notify::new());
        let watch = idle.watch(is_idle.clone(), &policy).map_err(io::Error::other)?;
        tokio::spawn(async move {
            tokio::select! {
                _ = echo(stream, watch) => {}
                () = is_idle.notified() => {} // drops the stream, which closes it
            }
        });
    }
}

async fn echo(mut stream: TcpStream, watch: Watch) -> io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {
        watch.record_read(); // one store, which pushes the timeout back
        stream.write_all(&byte).await?;
    }
    Ok(())
}

async fn client(port: u16, name: &str, words: u32) -> io::Result<()> {
    let (started, mut stream) = (Instant::now(), TcpStream::connect(("127.0.0.1", port)).await?);
    for _ in 0..words {
        tokio::time::sleep(Duration::from_millis(100)).await;
        stream.write_all(b"!").await?;
        stream.read_u8().await?;
    }
    assert_eq!(stream.read(&mut [0]).await?, 0, "the server closes it");
    println!("{name} client: closed after {:.1?}", started.elapsed());
    Ok(())
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let timer = HashedWheelTimer::new().map_err(io::Error::other)?;
    let idle = IdleTimeouts::new(&timer, |is_idle: &mut Arc<Notify>, _| {
        is_idle.notify_one();
        Answer::StopWatching
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(serve(listener, idle));
    tokio::try_join!(client(port, "silent", 0), client(port, "talking", 15)).map(drop)
}
