//! Queries and forms.

use form_urlencoded::parse;
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use wheelwork_http::RequestBody;
use wheelwork_jobs::JobId;

/// The most bytes of a form. A page of jobs has 50 ids.
const LONGEST_FORM: usize = 64 * 1024;

/// The names and values of a query or a form.
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn of_query(query: Option<&str>) -> Self {
        Self::of(query.unwrap_or_default().as_bytes())
    }

    /// `None` if the body is too long, or ends too early.
    pub(super) async fn of_body(body: RequestBody) -> Option<Self> {
        if body.size_hint().lower() > LONGEST_FORM as u64 {
            return None; // as its header says
        }
        let body = Limited::new(body, LONGEST_FORM).collect().await.ok()?;
        Some(Self::of(&body.to_bytes()))
    }

    fn of(bytes: &[u8]) -> Self {
        Self(parse(bytes).map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| &**value)
    }

    /// A number, 0 if there is none.
    pub(super) fn number(&self, name: &str) -> usize {
        self.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// The ids of the jobs that were chosen. `None` if one of them is none.
    pub(super) fn ids(&self) -> Option<Vec<JobId>> {
        let ids = self.0.iter().filter(|(name, _)| name == "id");
        ids.map(|(_, id)| id.parse().ok()).collect()
    }
}
