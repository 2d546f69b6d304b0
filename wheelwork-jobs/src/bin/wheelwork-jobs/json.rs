//! Jobs and counts as JSON. A payload is a part of the document, not a text in it. Times are as in RFC 3339.

use crate::table::{exact, state};
use serde_json::{Value, json};
use wheelwork_jobs::{KindStats, StoredJob};

pub(crate) fn jobs(jobs: &[StoredJob]) -> String {
    text(&jobs.iter().map(job_value).collect())
}

pub(crate) fn job(job: &StoredJob) -> String {
    text(&job_value(job))
}

fn job_value(job: &StoredJob) -> Value {
    let mut value = brief(job);
    value["priority"] = job.priority.into();
    value["payload"] = payload(&job.payload);
    value["error"] = job.error.clone().into();
    value["result"] = job.result.as_deref().map(payload).into();
    value["progress"] = job.progress.as_ref().map_or(
        Value::Null,
        |progress| json!({ "done": progress.done, "of": progress.of, "text": progress.text }),
    );
    value
}

fn brief(job: &StoredJob) -> Value {
    json!({
        "id": job.id.to_string(),
        "kind": job.kind,
        "key": job.key,
        "due": exact(job.due),
        "state": state(job.state),
        "attempts": job.attempts,
        "done": job.done.map(exact),
    })
}

/// Jobs that are done, without their payloads and results.
pub(crate) fn done(jobs: &[StoredJob]) -> String {
    text(&jobs.iter().map(brief).collect())
}

/// Another program may have written something else than JSON into the row.
fn payload(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

pub(crate) fn stats(kinds: &[KindStats]) -> String {
    let kind = |kind: &KindStats| {
        json!({
            "kind": kind.kind,
            "waiting": kind.waiting,
            "overdue": kind.overdue,
            "claimed": kind.claimed,
            "dead": kind.dead,
            "paused": kind.paused,
            "next_due": kind.next_due.map(exact),
        })
    };
    text(&kinds.iter().map(kind).collect())
}

pub(crate) fn changed(verb: &str, done: &[String], refused: &[String]) -> String {
    text(&json!({ verb: done, "refused": refused }))
}

pub(crate) fn pruned(number: u64) -> String {
    text(&json!({ "pruned": number }))
}

pub(crate) fn migrated(from: u32, to: u32) -> String {
    text(&json!({ "from": from, "to": to }))
}

/// On one line. JSON may contain characters after ASCII that control a terminal.
fn text(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        if c.is_control() {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}
