//! Claims that were revoked: a cancel or a move has taken the job away from its owner.
//!
//! The statement that does so leaves a row in `wheelwork_revoked`. The owner finds it by its next beat at the
//! latest, in the statement that prolongs its life, and deletes the row when it has dropped the job. Whoever has
//! cancelled waits until the row is gone, or the owner has ended.

use super::listen::claim;
use super::{Inner, rows, sql, uuid};
use crate::store::{Claim, NodeId, Result};
use uuid::Uuid;

pub(super) fn claims(texts: &[&str]) -> Vec<Claim> {
    texts.iter().filter_map(|text| claim(text.split(' '))).collect()
}

impl Inner {
    pub(super) async fn revoked(&self, claims: &[(NodeId, Claim)]) -> Result<Vec<(NodeId, Claim)>> {
        let nodes: Vec<i64> = claims.iter().map(|(NodeId(node), _)| *node).collect();
        let ids: Vec<Uuid> = claims.iter().map(|(_, claim)| uuid(claim.id)).collect();
        let epochs: Vec<i64> = claims.iter().map(|(_, claim)| claim.epoch.cast_signed()).collect();
        // Where it was revoked: another server might not know of it yet.
        let mut call = self.calls.call("look for revoked claims").await?;
        let found = call.read(sql::REVOKED, &[&nodes, &ids, &epochs]).await?;
        drop(call);
        let (mut revoked, mut lapsed) = (Vec::new(), false);
        for row in &found {
            revoked.push(rows::revoked(row)?);
            lapsed |= rows::get::<bool>(row, 3)?;
        }
        if lapsed {
            // There may be no other node that does it.
            self.take_over().await?;
        }
        Ok(revoked)
    }
}
