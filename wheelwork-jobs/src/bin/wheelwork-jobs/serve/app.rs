//! Answers requests: each path has its page or its change.

use super::form::Fields;
use super::guard::Guard;
use super::note;
use super::page::{self, Answer, JobsPage, PAGE};
use crate::table::jobs_of;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use wheelwork_http::RequestBody;
use wheelwork_jobs::{Glance, JobId, Jobs, Peek, State, Store, StoreError};

/// How long counts are shown again.
const FRESH: Duration = Duration::from_secs(2);

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const STYLE: &str = include_str!("style.css");

/// Nothing runs, nothing comes from elsewhere, and no other site shows this one or learns of it.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub(super) struct App<S: Store> {
    jobs: Jobs<S>,
    guard: Guard,
    /// The last counts, and when they were asked for. A request that waits for the lock gets the counts of the first.
    glance: Mutex<Option<(Instant, Arc<Glance>)>>,
}

impl<S: Store> App<S> {
    pub(super) fn new(jobs: Jobs<S>, guard: Guard) -> Self {
        Self { jobs, guard, glance: Mutex::default() }
    }

    pub(super) async fn answer(&self, request: Request<RequestBody>) -> Response<String> {
        let (status, kind, body) = match self.route(request).await {
            Ok(answer) => answer,
            Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        }
        response
    }

    async fn route(&self, request: Request<RequestBody>) -> Result<Answer, StoreError> {
        let uri = request.uri();
        if !self.guard.knows_host(request.headers(), uri.authority()) {
            let text = "the server does not have this name: expected an address, localhost, or a name of \
                --host-name";
            return Ok(refuse(StatusCode::MISDIRECTED_REQUEST, text));
        }
        let is_post = request.method() == Method::POST;
        if !is_post && ![Method::GET, Method::HEAD].contains(request.method()) {
            return Ok(refuse(StatusCode::METHOD_NOT_ALLOWED, "expected GET or POST"));
        }
        let query = Fields::of_query(uri.query());
        match (&*uri.path().to_owned(), is_post) {
            ("/", false) => {
                let refresh = query.get("refresh").is_some();
                Ok(html(page::kinds(&*self.glance().await?, refresh)))
            }
            ("/kind", false) => self.jobs(State::Waiting, &query).await,
            ("/dead", false) => self.jobs(State::Dead, &query).await,
            ("/done", false) => self.jobs(State::Done, &query).await,
            ("/job", false) => self.job(&query).await,
            ("/style.css", false) => {
                Ok((StatusCode::OK, "text/css; charset=utf-8", STYLE.to_owned()))
            }
            ("/metrics", false) => {
                let text = self.glance().await?.to_prometheus();
                Ok((StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
            }
            ("/retry", true) => self.change(true, request).await,
            ("/delete", true) => self.change(false, request).await,
            ("/retry" | "/delete", false) => {
                Ok(refuse(StatusCode::METHOD_NOT_ALLOWED, "expected POST"))
            }
            (_, true) => Ok(refuse(StatusCode::METHOD_NOT_ALLOWED, "expected GET")),
            _ => Ok(refuse(StatusCode::NOT_FOUND, "there is no such page")),
        }
    }

    /// The counts. Two who ask at the same time cost the store one query.
    async fn glance(&self) -> Result<Arc<Glance>, StoreError> {
        let mut last = self.glance.lock().await;
        if let Some((_, glance)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(glance.clone());
        }
        let asked = Instant::now();
        let glance = Arc::new(self.jobs.glance().await?);
        *last = Some((asked, glance.clone()));
        Ok(glance)
    }

    /// Jobs in one state, of a kind or of all.
    async fn jobs(&self, state: State, query: &Fields) -> Result<Answer, StoreError> {
        let needs_kind = state == State::Waiting;
        let kind = query.get("kind").filter(|kind| needs_kind || !kind.is_empty());
        if needs_kind && kind.is_none() {
            return Ok(refuse(StatusCode::BAD_REQUEST, "expected a kind"));
        }
        let skip = query.number("skip");
        let peek = Peek { kind: kind.map(str::to_owned), state, skip, most: PAGE + 1 };
        let jobs = self.jobs.peek(peek).await?;
        Ok(html(page::jobs(&JobsPage {
            state,
            kind,
            jobs: &jobs,
            skip,
            is_chosen: query.get("all").is_some(),
            may_change: state == State::Dead && self.guard.allows_changes(),
        })))
    }

    async fn job(&self, query: &Fields) -> Result<Answer, StoreError> {
        let Some(id) = query.get("id").and_then(|id| id.parse().ok()) else {
            return Ok(refuse(StatusCode::BAD_REQUEST, "expected the id of a job"));
        };
        Ok(match self.jobs.get(id).await? {
            Some(job) => html(page::job(&job, self.guard.allows_changes())),
            None => refuse(StatusCode::NOT_FOUND, "no such job: it may be done, and not kept"),
        })
    }

    /// Retries the jobs of a form, or deletes them.
    async fn change(
        &self,
        retry: bool,
        request: Request<RequestBody>,
    ) -> Result<Answer, StoreError> {
        if !self.guard.allows_changes() {
            return Ok(refuse(StatusCode::FORBIDDEN, "expected a server with --allow-changes"));
        }
        let (head, body) = request.into_parts();
        let Some(form) = Fields::of_body(body).await else {
            return Ok(refuse(StatusCode::PAYLOAD_TOO_LARGE, "expected a shorter form"));
        };
        if !self.guard.may_change(&head.headers, form.get("token")) {
            return Ok(refuse(StatusCode::FORBIDDEN, "the token is wrong or missing"));
        }
        let Some(ids) = form.ids().filter(|ids| !ids.is_empty() && ids.len() <= PAGE) else {
            return Ok(refuse(StatusCode::BAD_REQUEST, "expected the ids of 1 to 50 jobs"));
        };
        let (mut done, mut refused): (Vec<JobId>, Vec<JobId>) = (Vec::new(), Vec::new());
        for id in ids {
            let is_done =
                if retry { self.jobs.revive(id).await? } else { self.jobs.cancel(id).await? };
            if is_done { &mut done } else { &mut refused }.push(id);
        }
        *self.glance.lock().await = None;
        let what = if retry { "retried" } else { "deleted" };
        let title = format!("{} {what}", jobs_of(done.len() as u64));
        note(&format!("{title}: {done:?}"));
        Ok(html(page::changed(&title, &refused, form.get("kind"))))
    }
}

fn html(page: String) -> Answer {
    (StatusCode::OK, HTML, page)
}

fn refuse(status: StatusCode, text: &str) -> Answer {
    (status, PLAIN, format!("{status}: {text}\n"))
}
