//! What happened to the messages and to the nodes.

use super::cluster::Outage;
use super::node::Sent;

#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// The begin, in microseconds of the store's clock like all times here.
    pub(crate) begun: u64,
    /// For each message the time before which it must not be sent: just before it was scheduled, plus
    /// its delay.
    pub(crate) not_before: Vec<u64>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) outages: Vec<Outage>,
}

impl Evidence {
    /// The sendings of each message, in the order of time.
    pub(crate) fn by_message(&self) -> Vec<Vec<Sent>> {
        let mut sent = vec![Vec::new(); self.not_before.len()];
        for one in &self.sent {
            if let Some(of_message) = sent.get_mut(one.message as usize) {
                of_message.push(*one);
            }
        }
        sent.iter_mut().for_each(|of_message: &mut Vec<Sent>| of_message.sort_by_key(|one| one.at));
        sent
    }
}
