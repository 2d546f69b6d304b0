//! A QUIC echo, and then the idle timeout, on a manual clock.

use plugs::quic::TimedRuntime;
use quinn::{ClientConfig, ConnectionError, Endpoint, EndpointConfig, Runtime};
use quinn::{ServerConfig, TransportConfig};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::net::UdpSocket;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use wheelwork::{HashedWheelTimer, ManualClock};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const IDLE: Duration = Duration::from_secs(30);

/// A configuration of a server, and one of a client that trusts it.
fn configurations() -> Result<(ServerConfig, ClientConfig)> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone())?;
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IDLE.try_into()?));
    let transport = Arc::new(transport);
    let mut server = ServerConfig::with_single_cert(vec![made.cert.into()], key.into())?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    server.transport_config(transport.clone());
    client.transport_config(transport);
    Ok((server, client))
}

fn endpoint(timer: &HashedWheelTimer, server: Option<ServerConfig>) -> Result<Endpoint> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let runtime = Arc::new(TimedRuntime(timer.clone()));
    Ok(Endpoint::new(EndpointConfig::default(), server, socket, runtime)?)
}

/// Answers one stream, then waits for the end of the connection.
async fn echo(server: Endpoint) -> Result<ConnectionError> {
    let connection = server.accept().await.ok_or("the endpoint is closed")?.await?;
    let (mut to, mut from) = connection.accept_bi().await?;
    to.write_all(&from.read_to_end(64).await?).await?;
    to.finish()?;
    Ok(connection.closed().await)
}

async fn run() -> Result<()> {
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder()
        .tick_duration(Duration::from_millis(10))
        .clock(clock.clone())
        .build()?;
    let (server_config, client_config) = configurations()?;
    let (server, client) = (endpoint(&timer, Some(server_config))?, endpoint(&timer, None)?);
    let address = server.local_addr()?;
    let serving = tokio::spawn(echo(server));

    let connection = client.connect_with(client_config, address, "localhost")?.await?;
    let (mut to, mut from) = connection.open_bi().await?;
    to.write_all(b"hello").await?;
    to.finish()?;
    assert_eq!(from.read_to_end(64).await?, b"hello");

    let silent_from = timer.now();
    let closing = tokio::spawn(async move { connection.closed().await });
    while !(closing.is_finished() && serving.is_finished()) {
        clock.advance_in_one_jump(Duration::from_millis(100));
        tokio::task::yield_now().await;
    }
    assert!(timer.now() - silent_from >= IDLE);
    assert_eq!(closing.await?, ConnectionError::TimedOut);
    assert_eq!(serving.await??, ConnectionError::TimedOut);
    Ok(())
}

/// quinn polls a timer that is ready until it resets it to another deadline.
#[test]
fn no_timer_fires_after_a_stop() -> Result<()> {
    let timer = HashedWheelTimer::new()?;
    timer.stop()?;
    let mut sleep = TimedRuntime(timer.clone()).new_timer(timer.now() + IDLE);
    let mut context = Context::from_waker(Waker::noop());
    assert!(sleep.as_mut().poll(&mut context).is_pending());
    sleep.as_mut().reset(timer.now());
    assert!(sleep.as_mut().poll(&mut context).is_ready());
    Ok(())
}

#[test]
fn an_idle_connection_times_out_on_the_timer() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(run())
}
