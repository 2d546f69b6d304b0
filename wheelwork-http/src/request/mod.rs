//! A request: what hyper and the service hold of it.

// From the lowest up to hyper's service:
//   ticket         keeps a request in flight, and tells its record what happens
//   chunk          a chunk of a response, which tells when it was sent
//   request_body   the body that the service reads
//   response_body  the body that hyper sends
//   executor       the task of an HTTP/2 stream
//   grpc           which requests are calls of gRPC, and their deadline
//   answer         the answers of limits
//   app            the services that a server takes
//   own_limits     the limits of a request, for its service
//   respond        hyper's service, and the future of a response
mod answer;
mod app;
mod chunk;
mod executor;
mod grpc;
mod own_limits;
mod request_body;
mod respond;
mod response_body;
mod ticket;

pub use app::App;
pub use executor::Executor;
pub use own_limits::OwnLimits;
pub use request_body::{BodyError, RequestBody};
pub(crate) use respond::Respond;
