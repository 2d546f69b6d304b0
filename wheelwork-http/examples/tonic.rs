//! A gRPC server with every limit, on tonic. Copy `main` and `run`.
//!
//! The service is written by hand, so that the example needs no compiler of protocol buffers. Yours is generated.

use std::time::Duration;
use tokio::net::TcpListener;
use tonic::service::Routes;
use wheelwork_http::{Limits, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:50051").await?;
    run(listener, async { drop(tokio::signal::ctrl_c().await) }).await
}

async fn run(
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn std::error::Error>> {
    let routes = Routes::new(echo::EchoServer);
    // A call without an answer ends with DEADLINE_EXCEEDED. Clients move to another server each half an hour.
    let limits = Limits::default()
        .handler(Duration::from_secs(20))
        .age(Duration::from_secs(1800), Duration::from_secs(300))
        .ping(Duration::from_secs(60), Duration::from_secs(10));
    serve(listener, routes.prepare(), limits).with_graceful_shutdown(stop).await?;
    Ok(())
}

/// What `tonic-build` would generate: a service with one method, whose messages are bytes.
mod echo {
    use bytes::{Buf, BufMut, Bytes};
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tonic::body::Body;
    use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
    use tonic::server::{Grpc, NamedService, UnaryService};
    use tonic::{Request, Response, Status};
    use tower_service::Service;

    #[derive(Clone, Copy, Debug)]
    pub(super) struct EchoServer;

    impl NamedService for EchoServer {
        const NAME: &'static str = "echo.Echo";
    }

    impl Service<http::Request<Body>> for EchoServer {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<Body>) -> Self::Future {
            Box::pin(async { Ok(Grpc::new(BytesCodec).unary(Method, request).await) })
        }
    }

    struct Method;

    impl UnaryService<Bytes> for Method {
        type Response = Bytes;
        type Future = Ready<Result<Response<Bytes>, Status>>;

        fn call(&mut self, request: Request<Bytes>) -> Self::Future {
            ready(Ok(Response::new(request.into_inner())))
        }
    }

    #[derive(Clone, Copy, Debug)]
    struct BytesCodec;

    impl Codec for BytesCodec {
        type Encode = Bytes;
        type Decode = Bytes;
        type Encoder = Self;
        type Decoder = Self;

        fn encoder(&mut self) -> Self {
            *self
        }

        fn decoder(&mut self) -> Self {
            *self
        }
    }

    impl Encoder for BytesCodec {
        type Item = Bytes;
        type Error = Status;

        fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
            buffer.put(item);
            Ok(())
        }
    }

    impl Decoder for BytesCodec {
        type Item = Bytes;
        type Error = Status;

        fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
            Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn it_answers_a_call() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            run(listener, async { drop(stopped.await) }).await.map_err(|error| error.to_string())
        });
        let socket = TcpStream::connect(address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::post("http://server/echo.Echo/Echo")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let (response, mut body) = client.send_request(request, false).unwrap();
        let message = Bytes::from_static(b"\0\0\0\0\x05hello");
        body.send_data(message.clone(), true).unwrap();
        let mut answer = response.await.unwrap().into_body();
        assert_eq!(answer.data().await.unwrap().unwrap(), message);
        assert_eq!(answer.trailers().await.unwrap().unwrap()["grpc-status"], "0");
        drop((answer, client));
        stop.send(()).unwrap();
        running.await.unwrap().unwrap();
    }
}
