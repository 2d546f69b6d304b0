//! What a `Jobs` has done, by kind.
//!
//! A kind that has a handler here has counts of its own, and so has each that is only scheduled or cancelled
//! here, up to `MOST`. The rest share one: whoever makes a kind of each customer's name must not fill the
//! memory, or the server of the metrics.

use super::KindMetrics;
use std::sync::Arc;

/// The most kinds that have their own counts.
const MOST: usize = 1_000;

impl KindMetrics {
    /// The name of all kinds together that have no counts of their own, because 1,000 others have.
    pub const OTHERS: &str = "(others)";
}

/// The counts of all kinds, in the order of names.
#[derive(Clone, Default)]
pub(super) struct Kinds(pub(super) Vec<KindMetrics>);

impl Kinds {
    pub(super) fn new(handled: &[Arc<str>]) -> Self {
        let mut kinds = Self::default();
        handled.iter().take(MOST).for_each(|kind| _ = kinds.of(kind));
        kinds
    }

    fn find(&self, kind: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|known| (*known.kind).cmp(kind))
    }

    /// The counts of a kind, or of those that have none of their own.
    pub(super) fn of(&mut self, kind: &str) -> &mut KindMetrics {
        let found = self.find(kind);
        if let Err(place) = found {
            let others = usize::from(self.find(KindMetrics::OTHERS).is_ok());
            if self.0.len() - others >= MOST && kind != KindMetrics::OTHERS {
                return self.of(KindMetrics::OTHERS);
            }
            self.0.insert(place, KindMetrics { kind: kind.into(), ..KindMetrics::default() });
        }
        let (Ok(place) | Err(place)) = found;
        &mut self.0[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_counts_of_their_own_until_there_are_many() {
        let mut kinds = Kinds::new(&["mail".into()]);
        (0..2_000).for_each(|n| kinds.of(&format!("kind {n:04}")).scheduled += 1);
        kinds.of("mail").scheduled += 1;
        kinds.of(KindMetrics::OTHERS).scheduled += 1;
        let read = kinds.0;
        assert_eq!(read.len(), MOST + 1);
        let scheduled = |kind: &str| {
            read.iter().find(|metrics| &*metrics.kind == kind).map(|metrics| metrics.scheduled)
        };
        assert_eq!(scheduled("kind 0998"), Some(1));
        assert_eq!(scheduled("kind 0999"), None);
        assert_eq!(scheduled("(others)"), Some(1_002));
        assert_eq!(scheduled("mail"), Some(1));
    }

    #[test]
    fn handlers_beyond_the_limit_share_their_counts() {
        let names: Vec<Arc<str>> = (0..MOST + 2).map(|n| format!("{n:04}").into()).collect();
        let mut kinds = Kinds::new(&names);
        kinds.of("0999").fired += 1;
        kinds.of("1000").fired += 1;
        kinds.of("1001").scheduled += 1;
        let read = kinds.0;
        assert_eq!(read.len(), MOST + 1);
        let others = read.first().unwrap();
        assert_eq!((&*others.kind, others.fired, others.scheduled), ("(others)", 1, 1));
    }
}
