//! What other nodes tell, by `NOTIFY`.
//!
//! The connection that keeps a node alive listens as well. So each beat shows that it is still there, and
//! a connection whose other end is gone is noticed by the beat that has no answer.

use crate::lock::lock;
use crate::store::{Claim, NodeId, Notice};
use std::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

/// Those who hear what is told.
#[derive(Default)]
pub(crate) struct Ears(Mutex<State>);

#[derive(Default)]
struct State {
    listeners: Vec<UnboundedSender<Notice>>,
    /// Of the connection that listens now.
    ended: Option<CancellationToken>,
}

impl Ears {
    pub(super) fn add(&self, listener: UnboundedSender<Notice>) {
        let mut state = lock(&self.0);
        if state.ended.as_ref().is_some_and(|ended| !ended.is_cancelled()) {
            let _ = listener.send(Notice::Listening); // the node may have stopped meanwhile
        }
        state.listeners.push(listener);
    }

    /// A connection listens now, until the token is cancelled.
    pub(super) fn listening(&self, ended: CancellationToken) {
        let mut state = lock(&self.0);
        state.ended = Some(ended);
        state.tell(Notice::Listening);
    }

    /// The connection that listened has ended.
    pub(super) fn lost(&self) {
        let mut state = lock(&self.0);
        if state.ended.take_if(|ended| ended.is_cancelled()).is_some() {
            state.tell(Notice::Lost);
        }
    }

    pub(super) fn hear(&self, payload: &str) {
        match parse(payload) {
            Some(notice) => lock(&self.0).tell(notice),
            None => log::warn!(
                "a notice {payload:?}: expected `look`, `paused` or `drop OWNER JOB EPOCH`"
            ),
        }
    }
}

impl State {
    fn tell(&mut self, notice: Notice) {
        self.listeners.retain(|listener| listener.send(notice).is_ok());
    }
}

fn parse(payload: &str) -> Option<Notice> {
    let mut words = payload.split(' ');
    let notice = match words.next()? {
        "look" => Notice::Look,
        "paused" => Notice::Paused,
        "drop" => {
            let node = NodeId(words.next()?.parse().ok()?);
            Notice::Drop(node, claim(words.by_ref())?)
        }
        _ => return None,
    };
    words.next().is_none().then_some(notice)
}

/// The id and the epoch.
pub(super) fn claim<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Claim> {
    Some(Claim { id: words.next()?.parse().ok()?, epoch: words.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_read_and_others_are_refused() {
        let id = "0190163d-8694-739b-aea5-966c26f8ad91";
        let claim = Claim { id: id.parse().unwrap(), epoch: 3 };
        assert_eq!(parse("look"), Some(Notice::Look));
        assert_eq!(parse("paused"), Some(Notice::Paused));
        assert_eq!(parse(&format!("drop 12 {id} 3")), Some(Notice::Drop(NodeId(12), claim)));
        for strange in ["", "look ", "drop", "drop 12 17 3", "drop x", &format!("drop 1 {id} 3 4")]
        {
            assert_eq!(parse(strange), None, "{strange:?}");
        }
    }
}
