//! A request: its record, and what hyper and the service hold of it.

// From the record up to hyper's service:
//   record         `Record`, what limits know of a request; `Ticket`, which keeps it in flight
//   chunk          a chunk of a response, which tells when it was sent
//   request_body   the body that the service reads
//   response_body  the body that hyper sends
//   executor       the task of an HTTP/2 stream
//   answer         the answers of limits
//   respond        hyper's service, and the future of a response
mod answer;
mod chunk;
mod executor;
mod record;
mod request_body;
mod respond;
mod response_body;

pub use executor::Executor;
pub(crate) use record::Record;
pub use request_body::{BodyError, RequestBody};
pub(crate) use respond::Respond;
