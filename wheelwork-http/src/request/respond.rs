//! `Respond`: hyper's service, and the future of a response.

use super::answer::answer;
use super::app::App;
use super::executor::{tell_record, tell_tunnel};
use super::grpc;
use super::own_limits::OwnLimits;
use super::request_body::RequestBody;
use super::response_body::ResponseBody;
use super::ticket::Ticket;
use crate::conn::{Conn, Flags, Record};
use crate::limits::RequestLimits;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A tower service as hyper's, with the limits of requests.
#[derive(Debug)]
pub(crate) struct Respond<S> {
    conn: Arc<Conn>,
    service: S,
}

impl<S> Respond<S> {
    pub(crate) fn new(conn: Arc<Conn>, service: S) -> Self {
        Self { conn, service }
    }
}

impl<S: App> hyper::service::Service<Request<Incoming>> for Respond<S> {
    type Response = Response<ResponseBody<S::Body>>;
    type Error = S::Error;
    type Future = Responding<S>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let is_http2 = self.conn.has(Flags::HTTP2);
        let kind = Kind {
            is_http2,
            is_connect: request.method() == Method::CONNECT,
            call: is_http2.then(|| grpc::kind(request.headers())).flatten(),
        };
        if self.conn.settings.tells_peer {
            request.extensions_mut().insert(self.conn.peer());
        }
        let tells_limits = self.conn.settings.tells_limits;
        let own = self.conn.settings.limits_for(&request);
        let has_body = !request.body().is_end_stream();
        let needs_record = is_http2 || own.is_some() || has_body || tells_limits;
        let record = needs_record.then(|| Arc::new(Record::new(own)));
        record.iter().for_each(|record| self.conn.note_request(record));
        if let Some(record) = record.as_ref().filter(|_| tells_limits) {
            request.extensions_mut().insert(OwnLimits::new(&self.conn, record));
        }
        let ticket = Ticket::new(&self.conn, record);
        if let Some(timeout) = kind.call.and_then(|_| grpc::timeout(request.headers())) {
            ticket.link().iter().for_each(|link| link.caller_waits(timeout));
        }
        let request = request.map(|incoming| RequestBody::new(incoming, &ticket));
        // On HTTP/2 this is the connection's task, and the first poll is the stream's: a panic must wait for that.
        let state = match catch_unwind(AssertUnwindSafe(|| self.service.clone())) {
            Ok(service) => State::Unready { service, request: Some(request) },
            Err(panic) => State::Panicked { panic: Some(panic) },
        };
        Responding { state, ticket: Some(ticket), kind, is_first: true }
    }
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    is_http2: bool,
    is_connect: bool,
    /// The content type of a call of gRPC.
    call: Option<&'static str>,
}

pin_project! {
    #[project = StateNow]
    enum State<S: App> {
        Unready { service: S, request: Option<Request<RequestBody>> },
        Called { #[pin] future: S::Future },
        Panicked { panic: Option<Box<dyn Any + Send>> },
        Ended,
    }
}

pin_project! {
    /// The future of a response.
    pub(crate) struct Responding<S: App> {
        #[pin]
        state: State<S>,
        ticket: Option<Ticket>,
        kind: Kind,
        is_first: bool,
    }

    impl<S: App> PinnedDrop for Responding<S> {
        fn drop(this: Pin<&mut Self>) {
            // The client has left. The body may live on elsewhere, and the record with it.
            this.project().ticket.iter().for_each(|ticket| ticket.head_sent(None));
        }
    }
}

impl<S: App> Future for Responding<S> {
    type Output = Result<Response<ResponseBody<S::Body>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // hyper never polls it again after the response.
        let Some(ticket) = this.ticket.as_ref() else { return Poll::Pending };
        let kind = *this.kind;
        if std::mem::take(this.is_first) && kind.is_http2 {
            ticket.link().iter().for_each(|link| tell_record(link.record));
        }
        let mut passed = ticket.passed();
        if passed.is_none() {
            let polled = this.state.as_mut().poll(cx);
            // The body's limit may have passed in this poll.
            passed = ticket.passed();
            if passed.is_none() {
                let Poll::Ready(response) = polled else {
                    ticket.handler_works();
                    return Poll::Pending;
                };
                let Some(ticket) = this.ticket.take() else { return Poll::Pending };
                return Poll::Ready(response.map(|response| with_limits(response, ticket, kind)));
            }
        }
        this.state.set(State::Ended);
        let (Some(limit), Some(ticket)) = (passed, this.ticket.take()) else {
            return Poll::Pending;
        };
        ticket.head_sent(None);
        let answer = answer(limit, ticket.conn.limits(), kind.call);
        let body = ResponseBody::new(None, kind.is_http2, ticket);
        Poll::Ready(Ok(answer.map(|()| body)))
    }
}

impl<S: App> State<S> {
    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<S::Response, S::Error>> {
        if let StateNow::Unready { service, request } = self.as_mut().project() {
            ready!(service.poll_ready(cx))?;
            let Some(request) = request.take() else { return Poll::Pending };
            let future = service.call(request);
            self.set(Self::Called { future });
        }
        match self.project() {
            StateNow::Called { future } => future.poll(cx),
            StateNow::Panicked { panic } => match panic.take() {
                Some(panic) => resume_unwind(panic),
                None => Poll::Pending,
            },
            StateNow::Unready { .. } | StateNow::Ended => Poll::Pending,
        }
    }
}

fn with_limits<B>(response: Response<B>, ticket: Ticket, kind: Kind) -> Response<ResponseBody<B>> {
    ticket.head_sent(response.extensions().get::<RequestLimits>());
    let status = response.status();
    let is_accepted = kind.is_connect && status.is_success();
    if is_accepted && kind.is_http2 {
        tell_tunnel(ticket.another());
    } else if !kind.is_http2 && (is_accepted || status == StatusCode::SWITCHING_PROTOCOLS) {
        ticket.conn.become_tunnel();
    }
    response.map(|body| ResponseBody::new(Some(body), kind.is_http2, ticket))
}
